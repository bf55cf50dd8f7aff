package node

import (
	"context"

	"github.com/nodeactor/nodeactor/actors/apiserver"
	"github.com/nodeactor/nodeactor/actors/hotloop"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// observe tells the breaker of writes that are not of its reconcilers; those come to it on their own way.
func (p *parts) observe(ctx context.Context, w apiserver.Write) {
	if _, ours := kube.WriterOf(ctx); ours {
		return
	}
	object := hotloop.Object{Group: w.Group, Resource: w.Resource, Namespace: w.Namespace, Name: w.Name}
	if !w.Answered {
		p.breaker.Coming(w.User, w.Manager, object)
		return
	}
	p.breaker.Seen(w.User, w.Manager, w.Method, object)
}
