package apiserver

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// accounts looks up what a ServiceAccount token is bound to. It asks the index on every use, so a token stops working with its object; the
// verdict is cached by the caller.
type accounts struct{ client kubernetes.Interface }

// GetServiceAccount returns the ServiceAccount, or the API's error.
func (a accounts) GetServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return a.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
}

// GetPod returns the Pod, or the API's error.
func (a accounts) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return a.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

// GetSecret returns the Secret, or the API's error.
func (a accounts) GetSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return a.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

// GetNode returns the Node, or the API's error.
func (a accounts) GetNode(ctx context.Context, name string) (*corev1.Node, error) {
	return a.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
}

// GetValidatingWebhookConfiguration returns the configuration, or the API's error.
func (a accounts) GetValidatingWebhookConfiguration(ctx context.Context, name string) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	return a.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
}

// GetMutatingWebhookConfiguration returns the configuration, or the API's error.
func (a accounts) GetMutatingWebhookConfiguration(ctx context.Context, name string) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	return a.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
}
