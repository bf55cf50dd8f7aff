package node

import (
	"os"

	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// EffectivePolicies is what a node with this configuration does on each fault. The error has
// every finding about the overrides; nothing of the node is opened or started.
func EffectivePolicies(c Config) ([]catalog.Effective, error) {
	dir, err := os.MkdirTemp("", "nodeactor-policies-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c.DataDir = dir
	root, err := Blueprint(c)
	if err != nil {
		return nil, err
	}
	return catalog.Describe(&root, c.FaultPolicies), nil
}
