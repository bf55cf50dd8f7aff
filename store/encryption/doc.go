// Package encryption encrypts what is stored, as an EncryptionConfiguration of apiserver.config.k8s.io/v1 says: the file that
// kube-apiserver takes, read by its own loader. What may be in it, and how keys are changed, is described at
// https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data/.
//
// Load reads the file; TransformerForResource is what a storage writes and reads with; Reload takes a changed file in. A new file that
// could not read what the one before can is refused, so that no key goes before its objects were written anew.
package encryption
