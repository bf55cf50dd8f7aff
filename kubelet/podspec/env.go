package podspec

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/nodeactor/nodeactor/kubelet/objects"
)

// Service is what containers learn from their environment about one Service.
type Service struct {
	Namespace, Name, ClusterIP string
	Ports                      []ServicePort
}

// ServicePort is one port of a Service.
type ServicePort struct {
	Name, Protocol string
	Port           int32
}

// EnvSource is where the environment of a container comes from.
type EnvSource struct {
	Pod      *v1.Pod
	PodIPs   []string
	Host     Host
	Objects  objects.Source
	Services []Service
}

// env keeps variables in the order of their first appearance.
type env struct {
	names  []string
	values map[string]string
}

func (e *env) set(name, value string) {
	if _, ok := e.values[name]; !ok {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

func (e *env) get(name string) (string, bool) { v, ok := e.values[name]; return v, ok }

func (e *env) list() []string {
	out := make([]string, len(e.names))
	for i, n := range e.names {
		out[i] = n + "=" + e.values[n]
	}
	return out
}

// Env is the environment of container c on top of image, the image's own, and a lookup for expansions in its command
// line. An error says which reference cannot be resolved.
func Env(ctx context.Context, src EnvSource, c *v1.Container, image []string) (list []string, lookup func(string) (string, bool), err error) {
	own := &env{values: map[string]string{}}
	src.services(own)
	for i := range c.EnvFrom {
		if err := src.from(ctx, own, &c.EnvFrom[i]); err != nil {
			return nil, nil, err
		}
	}
	for i := range c.Env {
		v := &c.Env[i]
		value, ok, err := src.value(ctx, own, c, v)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			own.set(v.Name, value)
		}
	}
	all := &env{values: map[string]string{}}
	for _, kv := range image {
		k, v, _ := strings.Cut(kv, "=")
		all.set(k, v)
	}
	for _, n := range own.names {
		all.set(n, own.values[n])
	}
	return all.list(), own.get, nil
}

func (s EnvSource) value(ctx context.Context, e *env, c *v1.Container, v *v1.EnvVar) (string, bool, error) {
	if v.ValueFrom == nil {
		return Expand(v.Value, e.get), true, nil
	}
	switch f := v.ValueFrom; {
	case f.FieldRef != nil:
		value, err := Field(s.Pod, f.FieldRef.FieldPath, s.PodIPs, s.Host)
		return value, true, err
	case f.ResourceFieldRef != nil:
		value, err := Resource(s.Pod, c, f.ResourceFieldRef, s.Host)
		return value, true, err
	case f.ConfigMapKeyRef != nil:
		return s.configMapKey(ctx, f.ConfigMapKeyRef)
	case f.SecretKeyRef != nil:
		return s.secretKey(ctx, f.SecretKeyRef)
	}
	return "", false, fmt.Errorf("cannot set environment variable %s: its source is not supported", v.Name)
}

func optional(b *bool) bool { return b != nil && *b }

func (s EnvSource) configMapKey(ctx context.Context, r *v1.ConfigMapKeySelector) (string, bool, error) {
	cm, err := s.Objects.ConfigMap(ctx, s.Pod.Namespace, r.Name)
	if err != nil {
		if apierrors.IsNotFound(err) && optional(r.Optional) {
			return "", false, nil
		}
		return "", false, err
	}
	if v, ok := cm.Data[r.Key]; ok {
		return v, true, nil
	}
	if optional(r.Optional) {
		return "", false, nil
	}
	return "", false, fmt.Errorf("couldn't find key %v in ConfigMap %v/%v", r.Key, s.Pod.Namespace, r.Name)
}

func (s EnvSource) secretKey(ctx context.Context, r *v1.SecretKeySelector) (string, bool, error) {
	secret, err := s.Objects.Secret(ctx, s.Pod.Namespace, r.Name)
	if err != nil {
		if apierrors.IsNotFound(err) && optional(r.Optional) {
			return "", false, nil
		}
		return "", false, err
	}
	if v, ok := secret.Data[r.Key]; ok {
		return string(v), true, nil
	}
	if optional(r.Optional) {
		return "", false, nil
	}
	return "", false, fmt.Errorf("couldn't find key %v in Secret %v/%v", r.Key, s.Pod.Namespace, r.Name)
}

// from sets every key of a config map or secret.
func (s EnvSource) from(ctx context.Context, e *env, f *v1.EnvFromSource) error {
	data := map[string]string{}
	var err error
	var opt *bool
	switch {
	case f.ConfigMapRef != nil:
		var cm *v1.ConfigMap
		opt = f.ConfigMapRef.Optional
		if cm, err = s.Objects.ConfigMap(ctx, s.Pod.Namespace, f.ConfigMapRef.Name); err == nil {
			data = cm.Data
		}
	case f.SecretRef != nil:
		var secret *v1.Secret
		opt = f.SecretRef.Optional
		if secret, err = s.Objects.Secret(ctx, s.Pod.Namespace, f.SecretRef.Name); err == nil {
			for k, v := range secret.Data {
				data[k] = string(v)
			}
		}
	}
	if err != nil && !(apierrors.IsNotFound(err) && optional(opt)) {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(data)) {
		if name := f.Prefix + k; !strings.ContainsAny(name, "=\x00") {
			e.set(name, data[k])
		}
	}
	return nil
}

// services sets the variables of the Services the pod is linked to, and always those of the API.
func (s EnvSource) services(e *env) {
	links := s.Pod.Spec.EnableServiceLinks == nil || *s.Pod.Spec.EnableServiceLinks
	sorted := slices.Clone(s.Services)
	slices.SortFunc(sorted, func(a, b Service) int { return strings.Compare(a.Name, b.Name) })
	for _, svc := range sorted {
		api := svc.Namespace == v1.NamespaceDefault && svc.Name == "kubernetes"
		if api || links && svc.Namespace == s.Pod.Namespace {
			serviceEnv(e, svc)
		}
	}
}

func serviceEnv(e *env, svc Service) {
	if svc.ClusterIP == "" || svc.ClusterIP == v1.ClusterIPNone || len(svc.Ports) == 0 {
		return
	}
	name := envName(svc.Name)
	host := svc.ClusterIP
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	e.set(name+"_SERVICE_HOST", svc.ClusterIP)
	e.set(name+"_SERVICE_PORT", strconv.Itoa(int(svc.Ports[0].Port)))
	for _, p := range svc.Ports {
		if p.Name != "" {
			e.set(name+"_SERVICE_PORT_"+envName(p.Name), strconv.Itoa(int(p.Port)))
		}
	}
	for i, p := range svc.Ports {
		proto := strings.ToLower(p.Protocol)
		if proto == "" {
			proto = "tcp"
		}
		port := strconv.Itoa(int(p.Port))
		url := proto + "://" + host + ":" + port
		if i == 0 {
			e.set(name+"_PORT", url)
		}
		prefix := name + "_PORT_" + port + "_" + strings.ToUpper(proto)
		e.set(prefix, url)
		e.set(prefix+"_PROTO", proto)
		e.set(prefix+"_PORT", port)
		e.set(prefix+"_ADDR", svc.ClusterIP)
	}
}

func envName(s string) string { return strings.ToUpper(strings.ReplaceAll(s, "-", "_")) }
