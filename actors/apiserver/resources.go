package apiserver

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
)

// servedVersions returns which group versions are served: every one that upstream calls stable, and no other.
func servedVersions() *serverstorage.ResourceConfig {
	served := serverstorage.NewResourceConfig()
	served.EnableVersions(
		admissionregistrationv1.SchemeGroupVersion,
		appsv1.SchemeGroupVersion,
		authenticationv1.SchemeGroupVersion,
		authorizationv1.SchemeGroupVersion,
		autoscalingv1.SchemeGroupVersion,
		autoscalingv2.SchemeGroupVersion,
		batchv1.SchemeGroupVersion,
		certificatesv1.SchemeGroupVersion,
		coordinationv1.SchemeGroupVersion,
		corev1.SchemeGroupVersion,
		discoveryv1.SchemeGroupVersion,
		eventsv1.SchemeGroupVersion,
		flowcontrolv1.SchemeGroupVersion,
		networkingv1.SchemeGroupVersion,
		nodev1.SchemeGroupVersion,
		policyv1.SchemeGroupVersion,
		rbacv1.SchemeGroupVersion,
		resourcev1.SchemeGroupVersion,
		schedulingv1.SchemeGroupVersion,
		storagev1.SchemeGroupVersion,
		storagemigrationv1.SchemeGroupVersion,
	)
	return served
}
