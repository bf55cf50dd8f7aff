package node

import (
	"context"
	"fmt"
	"time"

	"github.com/nodeactor/nodeactor/actors/health"
	"github.com/nodeactor/nodeactor/store/encryption"
)

// providersTimeout bounds asking the programs that keep keys whether they answer.
const providersTimeout = 2 * time.Second

// openEncryption reads how objects are to be stored. A node that cannot do what the file says does not start.
func (p *parts) openEncryption() (err error) {
	if p.cfg.EncryptionProviderConfig == "" {
		return nil
	}
	p.encryption, err = encryption.Load(context.Background(), encryption.Config{
		File: p.cfg.EncryptionProviderConfig, Name: p.cfg.NodeName, Clock: p.clock, Log: p.log,
	})
	return err
}

// sealedNote is what everybody may know of objects that cannot be decrypted, nil when there are none. The node stays ready: all else is served.
func (p *parts) sealedNote() error {
	s, _ := p.store.get()
	if s == nil {
		return nil
	}
	if u := s.Undecryptable(); u != nil {
		return fmt.Errorf("%s; nodeactor status on the host says more", u.Brief())
	}
	return nil
}

// followEncryption takes changes of the configuration in until ctx ends.
func (p *parts) followEncryption(ctx context.Context) error {
	if s, _ := p.store.get(); s != nil {
		return s.FollowEncryption(ctx)
	}
	<-ctx.Done()
	return nil
}

// judgeEncryption makes a node whose providers of keys do not answer not ready.
func (p *parts) judgeEncryption(h *health.Health) {
	if p.encryption == nil {
		return
	}
	h.Also("encryption", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), providersTimeout)
		defer cancel()
		return p.encryption.Check(ctx)
	})
}
