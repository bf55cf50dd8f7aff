package kubelet

import (
	"context"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

const (
	setupDeadline = 30 * time.Second
	// setupRetry is the wait before a failed set-up is tried again, setupCheck how often a good one is checked.
	setupRetry = 5 * time.Second
	setupCheck = time.Minute
)

// networkChild sets up what all pods share, and repairs it when something took it down.
type networkChild struct {
	*shared
	first bool
}

type setupTime struct{}

// Receive handles one message.
func (n *networkChild) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		n.first = true
		ctx.DeferReady()
		n.setup(ctx)
	case setupTime:
		n.setup(ctx)
	case supervision.JobDone:
		n.done(ctx, msg.Err)
	}
	return nil
}

func (n *networkChild) setup(ctx supervision.Context) {
	ctx.Go(supervision.Job{Name: "setup", Deadline: setupDeadline, Run: func(c context.Context, _ func()) (any, error) {
		return nil, n.Network.Setup(c)
	}})
}

// done lets the others start even after a failure: the node then says that it is not ready, and why.
func (n *networkChild) done(ctx supervision.Context, err error) {
	wait := setupCheck
	before := n.network.Load()
	if err == nil {
		n.network.Store(nil)
	} else {
		why := err.Error()
		n.network.Store(&why)
		wait = setupRetry
		if before == nil || *before != why {
			ctx.Log().Error("cannot set up the pod network", "error", err)
		}
	}
	if n.first {
		n.first = false
		ctx.Ready()
	}
	ctx.After(wait, setupTime{})
}
