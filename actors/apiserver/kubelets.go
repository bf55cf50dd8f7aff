package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"
	kubeletclient "k8s.io/kubernetes/pkg/kubelet/client"
)

// kubeletAddresses says by which kind of address a kubelet is called, best first.
var kubeletAddresses = []api.NodeAddressType{api.NodeInternalIP, api.NodeExternalIP, api.NodeHostName}

// kubelets finds the kubelet of a node by what its Node says.
type kubelets struct {
	nodes     rest.Getter
	transport http.RoundTripper
}

// GetConnectionInfo returns how the kubelet of the node is called. The connection is verified even when the caller of `logs` asks to skip
// that: both ends have certificates of the same authority.
func (k *kubelets) GetConnectionInfo(ctx context.Context, name types.NodeName) (*kubeletclient.ConnectionInfo, error) {
	obj, err := k.nodes.Get(ctx, string(name), &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	node, ok := obj.(*api.Node)
	if !ok {
		return nil, fmt.Errorf("cannot find the kubelet of node %s: unexpected %T", name, obj)
	}
	host, err := kubeletHost(node)
	if err != nil {
		return nil, err
	}
	port := int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)
	if port == 0 {
		port = defaultKubeletPort
	}
	return &kubeletclient.ConnectionInfo{
		Scheme:                         "https",
		Hostname:                       host,
		Port:                           strconv.Itoa(port),
		Transport:                      k.transport,
		InsecureSkipTLSVerifyTransport: k.transport,
		NodeFeatures:                   node.Status.DeclaredFeatures,
	}, nil
}

func kubeletHost(node *api.Node) (string, error) {
	for _, kind := range kubeletAddresses {
		for _, address := range node.Status.Addresses {
			if address.Type == kind && address.Address != "" {
				return address.Address, nil
			}
		}
	}
	return "", fmt.Errorf("cannot find the kubelet of node %s: its status has no address", node.Name)
}
