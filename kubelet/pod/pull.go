package pod

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/kubelet/pod/core"
	"github.com/nodeactor/nodeactor/kubelet/podspec"
	"github.com/nodeactor/nodeactor/supervision"
)

// ensureImage makes the container's image present as its policy wants.
func (a *Actor) ensureImage(ctx supervision.Context, name string, now time.Time) {
	c := podspec.Container(a.pod, name)
	if _, err := images.Normalize(c.Image); err != nil {
		//lint:ignore ST1005 people read this text in the status
		a.m.ImageEnsured(name, "", "", images.Reason(err), fmt.Errorf("Failed to apply default image tag %q: %w", c.Image, err), now)
		return
	}
	img, present := a.env.Images.Lookup(c.Image)
	switch policy := pullPolicy(c); {
	case policy == v1.PullNever && !present:
		a.enqueue(core.Action{Type: v1.EventTypeWarning, Reason: "ErrImageNeverPull", Container: name,
			Message: fmt.Sprintf("Container image %q is not present with pull policy of Never", c.Image)}, now)
		//lint:ignore ST1005 people read this text in the status
		a.m.ImageEnsured(name, "", "", "ErrImageNeverPull", fmt.Errorf("Container image %q is not present with pull policy of Never", c.Image), now)
	case policy != v1.PullAlways && present:
		a.enqueue(core.Action{Type: v1.EventTypeNormal, Reason: "Pulled", Container: name,
			Message: fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", c.Image)}, now)
		a.haveImage(name, img, now)
	default:
		a.requestPull(ctx, name, c.Image, now)
	}
}

// pullPolicy is the container's policy, or what follows from its image's tag.
func pullPolicy(c *v1.Container) v1.PullPolicy {
	if c.ImagePullPolicy != "" {
		return c.ImagePullPolicy
	}
	if strings.Contains(c.Image, "@") {
		return v1.PullIfNotPresent
	}
	base := c.Image[strings.LastIndexByte(c.Image, '/')+1:]
	if _, tag, ok := strings.Cut(base, ":"); ok && tag != "latest" {
		return v1.PullIfNotPresent
	}
	return v1.PullAlways
}

func (a *Actor) haveImage(name string, img images.Image, now time.Time) {
	a.images[name] = img
	a.m.ImageEnsured(name, img.Ref, img.ImageID(), "", nil, now)
}

// requestPull gathers the pod's credentials, then asks the images child.
func (a *Actor) requestPull(ctx supervision.Context, name, ref string, now time.Time) {
	a.enqueue(core.Action{Type: v1.EventTypeNormal, Reason: "Pulling", Container: name, Message: fmt.Sprintf("Pulling image %q", ref)}, now)
	self, p := ctx.Self(), a.pod
	send := func(ctx supervision.Context, a *Actor, auth *images.Keychain, now time.Time) {
		req := PullRequest{Ref: ref, Auth: auth, Container: name, ReplyTo: self}
		a.pulls[name] = pull{req, now}
		ctx.Send(a.env.Puller(), req)
	}
	if len(p.Spec.ImagePullSecrets) == 0 {
		send(ctx, a, nil, now)
		return
	}
	a.preparation(ctx, "pull secrets", secretsDeadline, func(c context.Context) apply {
		auth := a.keychain(c, p)
		return func(a *Actor, ctx supervision.Context, now time.Time) { send(ctx, a, auth, now) }
	})
}

// keychain holds the pod's pull secrets; one that cannot be read is left out, as the image may be public.
func (a *Actor) keychain(ctx context.Context, p *v1.Pod) *images.Keychain {
	var payloads [][]byte
	for _, r := range p.Spec.ImagePullSecrets {
		s, err := a.env.Objects.Secret(ctx, p.Namespace, r.Name)
		if err != nil {
			continue
		}
		for _, key := range []string{v1.DockerConfigJsonKey, v1.DockerConfigKey} {
			if b := s.Data[key]; len(b) > 0 {
				payloads = append(payloads, b)
			}
		}
	}
	k, err := images.NewKeychain(payloads...)
	if err != nil {
		return nil
	}
	return k
}

// pulled takes the answer of the images child.
func (a *Actor) pulled(d PullDone, now time.Time) {
	p, asked := a.pulls[d.Container]
	if !asked || p.req.Ref != d.Ref || a.m == nil {
		return
	}
	delete(a.pulls, d.Container)
	if d.Err != nil {
		reason := images.Reason(d.Err)
		if errors.Is(d.Err, images.ErrNotPresent) {
			reason = "ErrImagePull"
		}
		a.m.ImageEnsured(d.Container, "", "", reason, d.Err, now)
		return
	}
	a.enqueue(core.Action{Type: v1.EventTypeNormal, Reason: "Pulled", Container: d.Container,
		Message: fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting). Image size: %d bytes.", d.Ref,
			d.Took.Truncate(time.Millisecond), now.Sub(p.at).Truncate(time.Millisecond), d.Image.Size)}, now)
	a.haveImage(d.Container, d.Image, now)
}

// repeatPulls asks again for what the images child, perhaps restarted meanwhile, has not answered.
func (a *Actor) repeatPulls(ctx supervision.Context, now, wake time.Time) time.Time {
	for name, p := range a.pulls {
		if now.Sub(p.at) >= pullRepeat {
			p.at = now
			a.pulls[name] = p
			ctx.Send(a.env.Puller(), p.req)
		}
		wake = earlier(wake, a.pulls[name].at.Add(pullRepeat))
	}
	return wake
}
