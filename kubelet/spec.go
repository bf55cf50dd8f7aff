package kubelet

import (
	"errors"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// Kubelet is one node's kubelet: its supervision subtree and what else it offers.
type Kubelet struct {
	s    *shared
	spec supervision.Spec
}

// New prepares a kubelet. Nothing is started and nothing on the host is touched.
func New(d Deps) *Kubelet {
	s := newShared(d)
	return &Kubelet{s: s, spec: spec(s)}
}

// Spec is the subtree of a kubelet that offers nothing else; see [New].
func Spec(d Deps) supervision.Spec { return New(d).Spec() }

// Spec is the kubelet's supervision subtree.
func (k *Kubelet) Spec() supervision.Spec { return k.spec }

// NetworkProblem says why pods have no network, nil when they have one.
func (k *Kubelet) NetworkProblem() error {
	if why := k.s.network.Load(); why != nil {
		return errors.New(*why)
	}
	return nil
}

// Images is what people can do with the node's images.
func (k *Kubelet) Images() ImageService { return ImageService{k.s} }

func spec(s *shared) supervision.Spec {
	pods := catalog.Row("pods")
	template := catalog.Row("pod") // Ensure brings each pod its own Start
	pods.Template = &template
	all := catalog.Row("kubelet")
	all.Children = []supervision.Spec{
		child("network", func() supervision.Handler { return &networkChild{shared: s} }),
		child("images", func() supervision.Handler { return &imagesChild{shared: s} }),
		child("relist", func() supervision.Handler { return &relistChild{shared: s} }),
		pods,
		child("sync", func() supervision.Handler { return &syncChild{shared: s} }),
		child("node-status", func() supervision.Handler { return &nodeStatusChild{shared: s} }),
		child("node-lease", func() supervision.Handler { return &nodeLeaseChild{shared: s} }),
		child("kubelet-listener", func() supervision.Handler { return &listenerChild{shared: s} }),
	}
	all.Children[len(all.Children)-1].ID = "listener"
	return all
}

func child(row string, start func() supervision.Handler) supervision.Spec {
	c := catalog.Row(row)
	c.Start = start
	return c
}
