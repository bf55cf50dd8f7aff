package identity

import (
	"fmt"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// clusterName names the cluster, and the context, in a kubeconfig.
const clusterName = "nodeactor"

// WriteKubeconfig writes the administrator's kubeconfig for the server at the URL, mode 0600. A file that already says the same is left
// alone. The credentials are embedded, so the file works wherever the server is reachable, for as long as the certificate is valid; it is
// written anew with every start.
func (i *Identity) WriteKubeconfig(path, serverURL string) error {
	data, err := i.kubeconfig(serverURL)
	if err != nil {
		return fmt.Errorf("cannot build kubeconfig %s: %w", path, err)
	}
	have, err := readFile(path)
	if err != nil || slices.Equal(have, data) {
		return err
	}
	return writeFile(path, data)
}

func (i *Identity) kubeconfig(serverURL string) ([]byte, error) {
	admin, err := i.openLeaf(adminFile, i.authority, profile{user: AdminUser, groups: []string{MastersGroup}, usages: clientUsage})
	if err != nil {
		return nil, err
	}
	p, err := admin.certificate()
	if err != nil {
		return nil, err
	}
	key, err := encodeKey(p.key)
	if err != nil {
		return nil, err
	}
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{clusterName: {Server: serverURL, CertificateAuthorityData: i.CAPEM()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{AdminUser: {ClientCertificateData: p.certPEM(), ClientKeyData: key}},
		Contexts:       map[string]*clientcmdapi.Context{clusterName: {Cluster: clusterName, AuthInfo: AdminUser}},
		CurrentContext: clusterName,
	})
}
