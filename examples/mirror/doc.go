// Command mirror is an operator on plain client-go: it keeps copies of a ConfigMap in other namespaces.
//
// It knows nothing of nodeactor and imports nothing of it: shared informers, a work queue, the dynamic client and leader election by a
// Lease are those of k8s.io/client-go, and it runs against any Kubernetes API. A Mirror names a ConfigMap of its own namespace and the
// namespaces that are to have a copy:
//
//	apiVersion: example.com/v1
//	kind: Mirror
//	metadata: {name: settings, namespace: default}
//	spec: {configMap: settings, namespaces: [web, batch]}
//
// Start it with the kubeconfig of a node, after `kubectl apply -f crd.yaml`:
//
//	go run ./examples/mirror --kubeconfig /var/lib/nodeactor/admin.kubeconfig
//
// Two of them may run: the one that holds the Lease works, the other one takes over when it ends.
package main
