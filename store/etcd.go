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

// ServeEtcd serves the etcd v3 protocol on l, for reading and watching only, until ctx ends; it closes l.
//
// tlsConfig must name the CA of client certificates; authorize decides for the verified certificate of each caller whether it may
// read, which is to read everything, Secrets too. Writes are refused with the reason: they must pass admission.
func (s *Store) ServeEtcd(ctx context.Context, l net.Listener, tlsConfig *tls.Config, authorize func(*x509.Certificate) (read bool)) error {
	if tlsConfig == nil || tlsConfig.ClientCAs == nil && tlsConfig.GetConfigForClient == nil {
		_ = l.Close()
		return errors.New("cannot serve etcd protocol: no CA of client certificates")
	}
	if err := s.engine.ServeReadOnly(ctx, l, tlsConfig, authorize); err != nil {
		return fmt.Errorf("cannot serve etcd protocol on %s: %w", l.Addr(), err)
	}
	return nil
}

// ProbeEtcd asks the server at addr, as the client that cfg says, whether it answers: a store that is being opened anew does.
func ProbeEtcd(ctx context.Context, cfg *tls.Config, addr string) error {
	if err := engine.Probe(ctx, cfg, addr); err != nil {
		return fmt.Errorf("cannot reach the etcd protocol on %s: %w", addr, err)
	}
	return nil
}
