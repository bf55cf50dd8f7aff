package kubelet

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeactor/nodeactor/supervision"
)

const (
	leaseNamespace = v1.NamespaceNodeLease
	leaseSeconds   = 40
	// renewEvery is the time between renewals, withheldEvery between looks while they are withheld.
	renewEvery    = 10 * time.Second
	withheldEvery = time.Second
	leaseDeadline = 15 * time.Second
	leaseRetry    = 2 * time.Second
)

// nodeLeaseChild keeps the node's Lease: the object is written once per start, renewals go to the heartbeat, in memory.
// They are withheld while this node could not run pods.
type nodeLeaseChild struct {
	*shared
	held bool
}

type renewTime struct{}

type leaseTime struct{}

// Receive handles one message.
func (n *nodeLeaseChild) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		n.write(ctx)
		n.renew(ctx)
	case leaseTime:
		n.write(ctx)
	case renewTime:
		n.renew(ctx)
	case supervision.JobDone:
		if msg.Err != nil {
			ctx.After(leaseRetry, leaseTime{})
		}
	}
	return nil
}

func (n *nodeLeaseChild) renew(ctx supervision.Context) {
	now := ctx.Clock().Now()
	err := n.ready(now)
	if (err != nil) != n.held {
		n.held = err != nil
		if n.held {
			ctx.Log().Warn("lease renewals are withheld", "why", err)
		} else {
			ctx.Log().Info("lease renewals go on")
		}
	}
	wait := withheldEvery
	if err == nil {
		wait = renewEvery
		if n.Heartbeat != nil {
			if err := n.Heartbeat.Renewed(ctx.Context(), n.Config.NodeName, now); err != nil {
				ctx.Log().Warn("a renewal of the lease is refused", "why", err)
			}
		}
	}
	ctx.After(wait, renewTime{})
}

// write makes the Lease, or takes it over, with the time of this start.
func (n *nodeLeaseChild) write(ctx supervision.Context) {
	now := metav1.NewMicroTime(ctx.Clock().Now())
	ctx.Go(supervision.Job{Name: "lease", Deadline: leaseDeadline, Run: func(c context.Context, _ func()) (any, error) {
		return nil, n.ensureLease(c, now)
	}})
}

func (n *nodeLeaseChild) ensureLease(ctx context.Context, now metav1.MicroTime) error {
	leases := n.Client.CoordinationV1().Leases(leaseNamespace)
	have, err := leases.Get(ctx, n.Config.NodeName, metav1.GetOptions{})
	seconds, holder := int32(leaseSeconds), n.Config.NodeName
	if apierrors.IsNotFound(err) {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: holder, Namespace: leaseNamespace},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now}}
		if node := n.node.Load(); node != nil {
			l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
		}
		_, err = leases.Create(ctx, l, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	have = have.DeepCopy()
	have.Spec.HolderIdentity, have.Spec.LeaseDurationSeconds, have.Spec.RenewTime = &holder, &seconds, &now
	_, err = leases.Update(ctx, have, metav1.UpdateOptions{})
	return err
}
