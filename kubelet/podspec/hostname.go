package podspec

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

const maxHostname = 63

// Hostname is the pod's host name, and its fully qualified name if it has a subdomain ("" otherwise).
func Hostname(pod *v1.Pod, domain string) (name, fqdn string) {
	name = pod.Spec.Hostname
	if name == "" {
		name = pod.Name
	}
	if len(name) > maxHostname {
		name = strings.TrimRight(name[:maxHostname], "-.")
	}
	if pod.Spec.Subdomain != "" {
		fqdn = name + "." + pod.Spec.Subdomain + "." + pod.Namespace + ".svc." + domain
	}
	return name, fqdn
}

// KernelHostname is what gethostname(2) returns inside the pod.
func KernelHostname(pod *v1.Pod, domain string) string {
	name, fqdn := Hostname(pod, domain)
	if optional(pod.Spec.SetHostnameAsFQDN) && fqdn != "" {
		return fqdn
	}
	return name
}
