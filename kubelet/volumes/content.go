package volumes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/nodeactor/nodeactor/kubelet/podspec"
)

// Modes of files whose volume names none, and life of tokens.
const (
	defaultFileMode  = 0o644
	privateFileMode  = 0o600
	defaultTokenLife = 3607 * time.Second
	// maxTokenAge is when a token is replaced at the latest; earlier at renewAt of its life.
	maxTokenAge = 24 * time.Hour
	renewAt     = 0.8
)

// errSource is matched by errors that lie in the pod's own words, not in the way to the server.
var errSource = errors.New("invalid source")

// temporary tells whether err may go away without anyone changing the pod or what it refers to.
func temporary(err error) bool { return !apierrors.IsNotFound(err) && !errors.Is(err, errSource) }

// token is a service account token and its times.
type token struct {
	value           string
	issued, expires time.Time
}

func (t token) fresh(now time.Time) bool {
	life := t.expires.Sub(t.issued)
	return now.Sub(t.issued) < min(maxTokenAge, time.Duration(float64(life)*renewAt))
}

// collector gathers the content of one volume.
type collector struct {
	*Manager
	pod    *v1.Pod
	podIPs []string
	volume string
	mode   int32
	now    time.Time
	out    payload
}

func (m *Manager) publish(ctx context.Context, pod *v1.Pod, v *v1.Volume, podIPs []string, now time.Time) error {
	c := &collector{Manager: m, pod: pod, podIPs: podIPs, volume: v.Name, mode: defaultFileMode, now: now, out: payload{}}
	if err := c.collect(ctx, v); err != nil {
		return err
	}
	return publish(m.dir(pod, v, plugin(v)), c.out, fsGroup(pod), now)
}

func (c *collector) collect(ctx context.Context, v *v1.Volume) error {
	switch {
	case v.ConfigMap != nil:
		c.setMode(v.ConfigMap.DefaultMode)
		return c.configMap(ctx, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.Secret != nil:
		c.setMode(v.Secret.DefaultMode)
		return c.secret(ctx, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	case v.DownwardAPI != nil:
		c.setMode(v.DownwardAPI.DefaultMode)
		return c.downward(v.DownwardAPI.Items)
	}
	c.setMode(v.Projected.DefaultMode)
	for i := range v.Projected.Sources {
		if err := c.projection(ctx, &v.Projected.Sources[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) setMode(m *int32) {
	if m != nil {
		c.mode = *m
	}
}

func (c *collector) projection(ctx context.Context, s *v1.VolumeProjection) error {
	switch {
	case s.ConfigMap != nil:
		return c.configMap(ctx, s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional)
	case s.Secret != nil:
		return c.secret(ctx, s.Secret.Name, s.Secret.Items, s.Secret.Optional)
	case s.DownwardAPI != nil:
		return c.downward(s.DownwardAPI.Items)
	case s.ServiceAccountToken != nil:
		return c.token(ctx, s.ServiceAccountToken)
	}
	return fmt.Errorf("%w: this kind of projection is not supported on this node", errSource)
}

func (c *collector) configMap(ctx context.Context, name string, items []v1.KeyToPath, optional *bool) error {
	cm, err := c.objects.ConfigMap(ctx, c.pod.Namespace, name)
	if err != nil {
		return unlessOptional(err, optional)
	}
	data := make(map[string][]byte, len(cm.Data)+len(cm.BinaryData))
	for k, v := range cm.Data {
		data[k] = []byte(v)
	}
	for k, v := range cm.BinaryData {
		data[k] = v
	}
	return c.take(data, items, optional, "configmap", name)
}

func (c *collector) secret(ctx context.Context, name string, items []v1.KeyToPath, optional *bool) error {
	s, err := c.objects.Secret(ctx, c.pod.Namespace, name)
	if err != nil {
		return unlessOptional(err, optional)
	}
	return c.take(s.Data, items, optional, "secret", name)
}

func unlessOptional(err error, optional *bool) error {
	if optional != nil && *optional && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// take adds the chosen keys, or all when none are chosen.
func (c *collector) take(data map[string][]byte, items []v1.KeyToPath, optional *bool, kind, name string) error {
	if len(items) == 0 {
		for k, v := range data {
			c.add(k, v, nil, false)
		}
		return nil
	}
	for _, i := range items {
		v, ok := data[i.Key]
		if !ok {
			if optional != nil && *optional {
				continue
			}
			return fmt.Errorf("%w: %s references non-existent key in %s %s: %s", errSource, kind, kind, name, i.Key)
		}
		c.add(i.Path, v, i.Mode, false)
	}
	return nil
}

// add puts one file into the content. A private file belongs to the pod's user, if all containers have one.
func (c *collector) add(p string, data []byte, mode *int32, private bool) {
	f := file{data: data, mode: fs.FileMode(c.mode)}
	if mode != nil {
		f.mode = fs.FileMode(*mode)
	}
	if private {
		if uid, ok := commonUser(c.pod); ok {
			f.uid, f.mode = uid, privateFileMode
		} else if fsGroup(c.pod) >= 0 {
			f.mode = privateFileMode
		}
	}
	c.out[path.Clean(p)] = f
}

// commonUser is the user every container of the pod runs as by its security context.
func commonUser(pod *v1.Pod) (int, bool) {
	uid, known := int64(0), false
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			var u *int64
			if s := pod.Spec.SecurityContext; s != nil {
				u = s.RunAsUser
			}
			if s := list[i].SecurityContext; s != nil && s.RunAsUser != nil {
				u = s.RunAsUser
			}
			if u == nil || known && *u != uid {
				return 0, false
			}
			uid, known = *u, true
		}
	}
	return int(uid), known
}

func (c *collector) downward(items []v1.DownwardAPIVolumeFile) error {
	for _, i := range items {
		var value string
		var err error
		switch {
		case i.FieldRef != nil:
			value, err = podspec.Field(c.pod, i.FieldRef.FieldPath, c.podIPs, c.host())
		case i.ResourceFieldRef != nil:
			value, err = podspec.Resource(c.pod, nil, i.ResourceFieldRef, c.host())
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errSource, err)
		}
		c.add(i.Path, []byte(value), i.Mode, false)
	}
	return nil
}

func (c *collector) token(ctx context.Context, p *v1.ServiceAccountTokenProjection) error {
	key := string(c.pod.UID) + "/" + c.volume + "/" + p.Path
	c.mu.Lock()
	t, ok := c.tokens[key]
	c.mu.Unlock()
	if !ok || !t.fresh(c.now) {
		fresh, err := c.requestToken(ctx, p)
		switch {
		case err == nil:
			t = fresh
			c.mu.Lock()
			c.tokens[key] = t
			c.mu.Unlock()
		case ok && c.now.Before(t.expires): // the old one still serves
		default:
			return err
		}
	}
	c.add(p.Path, []byte(t.value), nil, true)
	return nil
}

func (c *collector) requestToken(ctx context.Context, p *v1.ServiceAccountTokenProjection) (token, error) {
	seconds := int64(defaultTokenLife / time.Second)
	if p.ExpirationSeconds != nil {
		seconds = *p.ExpirationSeconds
	}
	spec := authv1.TokenRequestSpec{ExpirationSeconds: &seconds,
		BoundObjectRef: &authv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: c.pod.Name, UID: c.pod.UID}}
	if p.Audience != "" {
		spec.Audiences = []string{p.Audience}
	}
	account := c.pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	s, err := c.objects.Token(ctx, c.pod.Namespace, account, spec)
	return token{s.Token, c.now, s.ExpirationTimestamp.Time}, err
}
