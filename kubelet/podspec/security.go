package podspec

import (
	"fmt"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
)

// identity is the user a container runs as.
type identity struct {
	uid, gid int
	groups   []int
}

// user resolves who c runs as; the container's security context wins over the pod's, and both over the image.
func user(pod *v1.Pod, c *v1.Container, img images.Image) (identity, error) {
	p, s := pod.Spec.SecurityContext, c.SecurityContext
	if p == nil {
		p = &v1.PodSecurityContext{}
	}
	if s == nil {
		s = &v1.SecurityContext{}
	}
	uid, gid := either(s.RunAsUser, p.RunAsUser), either(s.RunAsGroup, p.RunAsGroup)
	spec := img.Config.User
	if uid != nil {
		spec = strconv.FormatInt(*uid, 10)
	}
	id := identity{}
	var err error
	if id.uid, id.gid, id.groups, err = images.ResolveUser(img, spec); err != nil {
		return id, fmt.Errorf("cannot resolve user %q of image %s: %w", spec, img.Ref, err)
	}
	if err := nonRoot(pod, c, either(s.RunAsNonRoot, p.RunAsNonRoot), uid, id.uid, img.Config.User); err != nil {
		return id, err
	}
	if gid != nil {
		id.gid = int(*gid)
	}
	if p.SupplementalGroupsPolicy != nil && *p.SupplementalGroupsPolicy == v1.SupplementalGroupsPolicyStrict {
		id.groups = nil
	}
	id.groups = slices.Clone(id.groups)
	for _, g := range p.SupplementalGroups {
		id.groups = append(id.groups, int(g))
	}
	if p.FSGroup != nil {
		id.groups = append(id.groups, int(*p.FSGroup))
	}
	slices.Sort(id.groups)
	id.groups = slices.Compact(id.groups)
	return id, nil
}

func either[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

func nonRoot(pod *v1.Pod, c *v1.Container, required *bool, asked *int64, uid int, imageUser string) error {
	if required == nil || !*required {
		return nil
	}
	where := fmt.Sprintf("(pod: %q, container: %s)", pod.Name+"_"+pod.Namespace+"("+string(pod.UID)+")", c.Name)
	switch {
	case asked != nil && *asked == 0:
		return fmt.Errorf("container's runAsUser breaks non-root policy %s", where)
	case asked != nil:
		return nil
	case uid == 0:
		return fmt.Errorf("container has runAsNonRoot and image will run as root %s", where)
	}
	name := imageUser
	for i, r := range name {
		if r == ':' {
			name = name[:i]
			break
		}
	}
	if _, err := strconv.Atoi(name); err != nil {
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root %s", name, where)
	}
	return nil
}

// secure writes c's security context into spec.
func secure(pod *v1.Pod, c *v1.Container, spec *runtime.ContainerSpec) error {
	spec.Seccomp = "Unconfined"
	if p := pod.Spec.SecurityContext; p != nil && p.SeccompProfile != nil {
		spec.Seccomp = string(p.SeccompProfile.Type)
	}
	s := c.SecurityContext
	if s == nil {
		return knownSeccomp(spec)
	}
	if s.SeccompProfile != nil {
		spec.Seccomp = string(s.SeccompProfile.Type)
	}
	spec.Privileged = optional(s.Privileged)
	spec.ReadOnlyRootfs = optional(s.ReadOnlyRootFilesystem)
	spec.NoNewPrivs = s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation
	spec.UnmaskProc = s.ProcMount != nil && *s.ProcMount == v1.UnmaskedProcMount
	if k := s.Capabilities; k != nil {
		for _, cap := range k.Add {
			spec.CapAdd = append(spec.CapAdd, string(cap))
		}
		for _, cap := range k.Drop {
			spec.CapDrop = append(spec.CapDrop, string(cap))
		}
	}
	return knownSeccomp(spec)
}

func knownSeccomp(spec *runtime.ContainerSpec) error {
	if spec.Seccomp == string(v1.SeccompProfileTypeLocalhost) {
		return fmt.Errorf("cannot use a seccomp profile of type Localhost: not supported on this node")
	}
	return nil
}
