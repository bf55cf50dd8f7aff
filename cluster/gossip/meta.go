package gossip

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/memberlist"
)

// ErrMeta is returned when metadata does not fit into a gossip message, or is not ours.
var ErrMeta = errors.New("invalid gossip metadata")

// Meta is what every host says of itself in gossip. It is a hint for finding hosts, never
// state: that is in the store.
type Meta struct {
	// ID is the host's identity, the same in each of its lives.
	ID string `json:"i"`
	// API is the address of its API server, empty on an agent.
	API string `json:"a,omitempty"`
	// Epoch counts the host's lives.
	Epoch uint64 `json:"e,omitempty"`
	// Class is its size class, for placement.
	Class string `json:"c,omitempty"`
}

// Encode refuses what memberlist would answer with a panic: more than 512 bytes.
func (m Meta) Encode() ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("cannot encode metadata of %s: %w", m.ID, err)
	}
	if len(b) > memberlist.MetaMaxSize {
		return nil, fmt.Errorf("cannot announce %.40s: %w: %d bytes, at most %d fit", m.ID, ErrMeta, len(b), memberlist.MetaMaxSize)
	}
	return b, nil
}

// DecodeMeta reads what a peer says of itself.
func DecodeMeta(b []byte) (Meta, error) {
	var m Meta
	if err := json.Unmarshal(b, &m); err != nil {
		return Meta{}, fmt.Errorf("cannot read a peer's metadata: %w: %w", ErrMeta, err)
	}
	if m.ID == "" {
		return Meta{}, fmt.Errorf("cannot read a peer's metadata: %w: it has no ID", ErrMeta)
	}
	return m, nil
}
