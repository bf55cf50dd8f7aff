package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nodeactor/nodeactor/actors/controllers/replicagroup"
	"github.com/nodeactor/nodeactor/cluster/identity"
)

// What the node does about ReplicaGroups.
const (
	// ManageReplicaGroups is the default.
	ManageReplicaGroups = "manage"
	// WithoutBursts manages them, and removes all hydration bursts.
	WithoutBursts = "without-bursts"
	// ObserveReplicaGroups only looks, and writes nothing.
	ObserveReplicaGroups = "observe"
)

var replicaGroupModes = []string{ManageReplicaGroups, WithoutBursts, ObserveReplicaGroups}

func (c Config) validReplicaGroups() error {
	if !slices.Contains(replicaGroupModes, c.ReplicaGroups) {
		return fmt.Errorf("replicaGroups %q is none of %s", c.ReplicaGroups, strings.Join(replicaGroupModes, ", "))
	}
	return nil
}

// replicaGroups gives what was chosen, and counts.
func (p *parts) replicaGroups() (replicagroup.Options, error) {
	counts, err := replicagroup.NewMetrics(p.metrics)
	return replicagroup.Options{
		Observe:       func() bool { return p.cfg.ReplicaGroups == ObserveReplicaGroups },
		WithoutBursts: func() bool { return p.cfg.ReplicaGroups == WithoutBursts },
		Metrics:       counts,
	}, err
}

// defineKinds makes the API serve the kinds of our own.
func (p *parts) defineKinds(ctx context.Context) error {
	client, err := p.client(identity.AdminUser, identity.MastersGroup)
	if err != nil {
		return err
	}
	return replicagroup.Define(ctx, client.Discovery().RESTClient())
}
