// Package objects reads the API objects that pods refer to: config maps, secrets and service account tokens.
package objects

import (
	"context"
	"fmt"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Source gives what pods refer to. An error for which apierrors.IsNotFound holds means that the object does not exist;
// any other may be temporary. Results are shared: read, do not write.
type Source interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
	// Token asks for a token of the service account account.
	Token(ctx context.Context, namespace, account string, spec authv1.TokenRequestSpec) (authv1.TokenRequestStatus, error)
}

// FromClient reads each object anew through client.
func FromClient(client kubernetes.Interface) Source { return source{client} }

type source struct{ client kubernetes.Interface }

func (s source) ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	return s.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (s source) Secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	return s.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (s source) Token(ctx context.Context, namespace, account string, spec authv1.TokenRequestSpec) (authv1.TokenRequestStatus, error) {
	t, err := s.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return authv1.TokenRequestStatus{}, fmt.Errorf("cannot get a token of service account %s/%s: %w", namespace, account, err)
	}
	return t.Status, nil
}
