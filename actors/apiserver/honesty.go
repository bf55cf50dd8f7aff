package apiserver

import (
	"context"
	"io"
	"maps"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
)

// withoutEffect lists the kinds that this server stores and does not act upon, and what whoever writes one is told.
var withoutEffect = map[schema.GroupResource]string{
	{Group: flowcontrolv1.GroupName, Resource: "flowschemas"}:                 "stored without effect: requests are limited by number only",
	{Group: flowcontrolv1.GroupName, Resource: "prioritylevelconfigurations"}: "stored without effect: requests are limited by number only",
	{Group: networkingv1.GroupName, Resource: "servicecidrs"}:                 "stored without effect: addresses of services come from the configured range only",
	{Group: networkingv1.GroupName, Resource: "ipaddresses"}:                  "stored without effect: an address of a service is taken by the service alone",
}

// honestyPlugin names the plug-in that warns.
const honestyPlugin = "StoredWithoutEffect"

// honesty is a validating plug-in that refuses nothing, and warns whoever writes an object on which nobody acts.
type honesty struct {
	*admission.Handler
	warnings map[schema.GroupResource]string
}

// newHonesty returns the plug-in with further kinds of the caller's.
func newHonesty(further map[schema.GroupResource]string) *honesty {
	warnings := maps.Clone(withoutEffect)
	maps.Copy(warnings, further)
	return &honesty{Handler: admission.NewHandler(admission.Create, admission.Update), warnings: warnings}
}

// register makes the plug-in known.
func (h *honesty) register(plugins *admission.Plugins) {
	plugins.Register(honestyPlugin, func(io.Reader) (admission.Interface, error) { return h, nil })
}

// Validate warns.
func (h *honesty) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if text := h.warnings[a.GetResource().GroupResource()]; text != "" && a.GetSubresource() == "" {
		warning.AddWarning(ctx, "", a.GetResource().Resource+": "+text)
	}
	return nil
}
