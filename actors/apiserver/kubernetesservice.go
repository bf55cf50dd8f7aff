package apiserver

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// kubernetesService names the Service by which pods reach this server, its Endpoints and its EndpointSlice.
	kubernetesService = "kubernetes"
	// kubernetesServicePort is the port of that Service, kubernetesPortName that port's name.
	kubernetesServicePort, kubernetesPortName = 443, "https"
)

// ensureKubernetesService creates the Service `kubernetes` with the first address of the range, and points it at this server.
func (s *Server) ensureKubernetesService(ctx context.Context) error {
	ip, port, err := s.advertised()
	if err != nil {
		return fmt.Errorf("cannot use advertise address %q: %w", s.config.AdvertiseAddr, err)
	}
	if err := s.ensureService(ctx, port); err != nil {
		return err
	}
	if ip.IsLoopback() {
		s.log.Warn("the service kubernetes has no endpoints: pods cannot reach a loopback address", "address", s.config.AdvertiseAddr)
		return nil
	}
	if err := s.ensureEndpoints(ctx, ip.String(), int32(port)); err != nil {
		return err
	}
	family := discoveryv1.AddressTypeIPv4
	if ip.To4() == nil {
		family = discoveryv1.AddressTypeIPv6
	}
	return s.ensureEndpointSlice(ctx, ip.String(), int32(port), family)
}

func (s *Server) ensureService(ctx context.Context, port int) error {
	services := s.client.CoreV1().Services(metav1.NamespaceDefault)
	_, err := services.Get(ctx, kubernetesService, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	s.allocators.gate.Store(true)
	defer s.allocators.gate.Store(false)
	_, err = services.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:   kubernetesService,
			Labels: map[string]string{"provider": "kubernetes", "component": "apiserver"},
		},
		Spec: corev1.ServiceSpec{
			Type:            corev1.ServiceTypeClusterIP,
			ClusterIP:       s.allocators.reserved.String(),
			SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []corev1.ServicePort{{
				Name: kubernetesPortName, Port: kubernetesServicePort, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt(port),
			}},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

//nolint:staticcheck // Endpoints are deprecated and still what older clients read.
func (s *Server) ensureEndpoints(ctx context.Context, ip string, port int32) error {
	want := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: kubernetesService, Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"}},
		Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: ip}},
			Ports:     []corev1.EndpointPort{{Name: kubernetesPortName, Port: port, Protocol: corev1.ProtocolTCP}},
		}},
	}
	endpoints := s.client.CoreV1().Endpoints(metav1.NamespaceDefault)
	have, err := endpoints.Get(ctx, kubernetesService, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = endpoints.Create(ctx, want, metav1.CreateOptions{})
		return err
	}
	if err != nil || equality.Semantic.DeepEqual(have.Subsets, want.Subsets) && have.Labels[discoveryv1.LabelSkipMirror] == "true" {
		return err
	}
	want.ResourceVersion = have.ResourceVersion
	_, err = endpoints.Update(ctx, want, metav1.UpdateOptions{})
	return err
}

func (s *Server) ensureEndpointSlice(ctx context.Context, ip string, port int32, family discoveryv1.AddressType) error {
	ready, name, protocol := true, kubernetesPortName, corev1.ProtocolTCP
	want := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: kubernetesService, Labels: map[string]string{discoveryv1.LabelServiceName: kubernetesService}},
		AddressType: family,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
	slices := s.client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	have, err := slices.Get(ctx, kubernetesService, metav1.GetOptions{})
	if err == nil && have.AddressType != family { // cannot be changed in place
		err = slices.Delete(ctx, kubernetesService, metav1.DeleteOptions{})
		if err == nil {
			err = apierrors.NewNotFound(discoveryv1.Resource("endpointslices"), kubernetesService+strconv.Itoa(0))
		}
	}
	if apierrors.IsNotFound(err) {
		_, err = slices.Create(ctx, want, metav1.CreateOptions{})
		return err
	}
	if err != nil || equality.Semantic.DeepEqual(have.Endpoints, want.Endpoints) && equality.Semantic.DeepEqual(have.Ports, want.Ports) {
		return err
	}
	want.ResourceVersion = have.ResourceVersion
	_, err = slices.Update(ctx, want, metav1.UpdateOptions{})
	return err
}
