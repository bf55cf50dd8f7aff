package apiserver

import (
	"context"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeactor/nodeactor/cluster/identity"
)

// authenticationConfig names the ConfigMap from which aggregated API servers learn whom to believe.
const authenticationConfig = "extension-apiserver-authentication"

func (s *Server) ensureAuthenticationConfig(ctx context.Context) error {
	want, err := s.authenticationData()
	if err != nil {
		return err
	}
	configMaps := s.client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	have, err := configMaps.Get(ctx, authenticationConfig, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: authenticationConfig}, Data: want}, metav1.CreateOptions{})
		return err
	}
	if err != nil || maps.Equal(have.Data, want) {
		return err
	}
	have.Data = want
	_, err = configMaps.Update(ctx, have, metav1.UpdateOptions{})
	return err
}

func (s *Server) authenticationData() (map[string]string, error) {
	data := map[string]string{
		"client-ca-file":               string(s.config.Identity.CAPEM()),
		"requestheader-client-ca-file": string(s.config.Identity.FrontProxyCAPEM()),
	}
	for key, values := range map[string][]string{
		"requestheader-allowed-names":        {identity.FrontProxyUser},
		"requestheader-username-headers":     {"X-Remote-User"},
		"requestheader-uid-headers":          {"X-Remote-Uid"},
		"requestheader-group-headers":        {"X-Remote-Group"},
		"requestheader-extra-headers-prefix": {"X-Remote-Extra-"},
	} {
		text, err := json.Marshal(values)
		if err != nil {
			return nil, err
		}
		data[key] = string(text)
	}
	return data, nil
}
