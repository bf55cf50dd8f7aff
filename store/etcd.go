package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/nodeactor/nodeactor/store/engine"
)

// EtcdAccess is what a client of the etcd protocol may do.
type EtcdAccess = engine.Access

// What a client of the etcd protocol may do. To read is to read everything, Secrets too.
const (
	EtcdNone  = engine.NoAccess
	EtcdRead  = engine.ReadAccess
	EtcdWrite = engine.WriteAccess
)

// EtcdOptions says how to serve the etcd protocol.
type EtcdOptions struct {
	// TLS must name the CA of client certificates.
	TLS *tls.Config
	// Authorize decides for the verified certificate of each caller.
	Authorize func(*x509.Certificate) EtcdAccess
	// Writes takes writes of those who may write. They go round admission; otherwise all are refused, with that reason.
	Writes bool
	// URL is where the listener is reached, for the list of members.
	URL string
}

// ServeEtcd serves the etcd v3 protocol on l until ctx ends; it closes l. While the engine is away every call is answered with Unavailable.
func (s *Store) ServeEtcd(ctx context.Context, l net.Listener, o EtcdOptions) error {
	if o.TLS == nil || o.TLS.ClientCAs == nil && o.TLS.GetConfigForClient == nil {
		_ = l.Close()
		return errors.New("cannot serve etcd protocol: no CA of client certificates")
	}
	if s.engine == nil {
		_ = l.Close()
		return errors.New("cannot serve etcd protocol: the store's engine is in another process, which serves it")
	}
	serving := engine.Serving{TLS: o.TLS, Authorize: o.Authorize, Writes: o.Writes, URL: o.URL, Compact: s.compacting}
	if err := s.engine.Serve(ctx, l, serving); err != nil {
		return fmt.Errorf("cannot serve etcd protocol on %s: %w", l.Addr(), err)
	}
	return nil
}

// compacting lets a client forget history. The index must have it all first: what follows the log cannot leave out a part of it.
func (s *Store) compacting(ctx context.Context, revision int64, compact func(context.Context) error) error {
	s.compactMu.Lock()
	defer s.compactMu.Unlock()
	if err := s.index.Wait(ctx, min(revision, s.engine.Revision())); err != nil {
		return err
	}
	if err := compact(ctx); err != nil {
		return err
	}
	s.compacted.Store(max(revision, s.compacted.Load()))
	s.index.Forget(revision)
	return nil
}

// ProbeEtcd asks the server at addr, as the client that cfg says, whether it answers: a store that is being opened anew does.
func ProbeEtcd(ctx context.Context, cfg *tls.Config, addr string) error {
	if err := engine.Probe(ctx, cfg, addr); err != nil {
		return fmt.Errorf("cannot reach the etcd protocol on %s: %w", addr, err)
	}
	return nil
}
