package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/nodeactor/nodeactor/store/internal/guard"
)

const (
	// pingEvery is how often a client may ask at least whether the connection still stands. Clients that ask oftener are cut off; an API
	// server asks every 30 seconds, which the library would not have by default.
	pingEvery = 5 * time.Second
	// askAfter is how long a connection is quiet before the client is asked, askFor how long it has to answer.
	askAfter = 10 * time.Minute
	askFor   = 20 * time.Second
)

// Serving says how to serve the etcd protocol.
type Serving struct {
	// TLS must verify client certificates against a CA.
	TLS *tls.Config
	// Authorize says what the owner of a verified certificate may do.
	Authorize func(*x509.Certificate) Access
	// Writes lets those write who may; otherwise every write is refused.
	Writes bool
	// URL is the address of the listener for the list of members; "" for none.
	URL string
	// Compact is called instead of do when a client wants the history before the revision forgotten, and calls do; nil = do alone.
	Compact func(ctx context.Context, revision int64, do func(context.Context) error) error
}

// Serve serves the protocol of the seated member on l until ctx ends. While the seat is empty every call is answered with Unavailable. It
// closes l.
func (s *Seat) Serve(ctx context.Context, l net.Listener, o Serving) error {
	cfg := o.TLS.Clone()
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	cfg.NextProtos = []string{"h2"}
	g, relay := gate{o, s.write}, newRelay(l)
	servers := guard.New(ctx, "etcd listener", s.cfg.Log)
	defer servers.Wait(context.WithoutCancel(ctx))
	defer servers.Cancel()
	defer l.Close()
	servers.Go("accept", relay.run, func(error) {})
	for {
		server, until := s.server(g, credentials.NewTLS(cfg))
		done := make(chan error, 1)
		servers.Go("etcd server", func(context.Context) error { return server.Serve(relay.turn()) }, func(err error) { done <- err })
		select {
		case <-ctx.Done():
			server.Stop()
			return nil
		case <-until:
			server.Stop()
			<-done
		case err := <-done:
			return err
		}
	}
}

// server makes what answers now, and says until when it is the right one.
func (s *Seat) server(g gate, creds credentials.TransportCredentials) (*grpc.Server, <-chan struct{}) {
	next := s.next.Load().ch // before the look at the member: it is closed after the next one was seated
	options := []grpc.ServerOption{
		grpc.Creds(creds),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingEvery}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: askAfter, Timeout: askFor}),
	}
	if m := s.member.Load(); m != nil && m.Err() == nil {
		return v3rpc.Server(m.server, nil, g.unary, append(options, grpc.ChainStreamInterceptor(g.stream, m.countCopies))...), m.Failed()
	}
	return grpc.NewServer(append(options, grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return status.Error(codes.Unavailable, reasonAway)
	}))...), next
}

// write does a client's write under the same conditions as the store's own: the disk has room for it and keeps up.
func (s *Seat) write(ctx context.Context, req any, do grpc.UnaryHandler) (any, error) {
	m, err := s.admit(ctx, ask{bytes: size(req), frees: frees(req), deletes: frees(req)})
	if err != nil {
		return nil, grpcError(err)
	}
	s.pace.begin(s.cfg.Clock.Now(), m.applied())
	resp, err := do(ctx, req)
	s.pace.end(ctx.Err() == nil && status.Code(err) != codes.Unavailable)
	return resp, err
}

// size is how many bytes a write may add.
func size(req any) int {
	if m, ok := req.(proto.Message); ok && !frees(req) {
		return proto.Size(m)
	}
	return 0
}

// grpcError is a refusal of the store in the protocol's terms.
func grpcError(err error) error {
	switch {
	case errors.Is(err, ErrNoSpace):
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Unavailable, err.Error())
}
