package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/nodeactor/nodeactor/store/internal/guard"
)

// Reasons for refusing a call.
const (
	reasonAdmission = "writes must pass admission: use the Kubernetes API"
	reasonUnserved  = "not served by this store"
	reasonAway      = "the store is being opened anew; try again"
	reasonCert      = "the client certificate does not give the right to read the store"
)

// verdict is what happens to a call.
type verdict int

const (
	unserved verdict = iota // answers Unimplemented
	allowed                 // goes to the member
	write                   // answers PermissionDenied: it would go round admission
)

// calls decides by method; what is not named is unserved.
var calls = map[string]verdict{
	"/etcdserverpb.KV/Range":               allowed,
	"/etcdserverpb.KV/RangeStream":         allowed,
	"/etcdserverpb.KV/Put":                 write,
	"/etcdserverpb.KV/DeleteRange":         write,
	"/etcdserverpb.KV/Txn":                 write,
	"/etcdserverpb.KV/Compact":             write,
	"/etcdserverpb.Watch/Watch":            allowed,
	"/etcdserverpb.Lease/LeaseGrant":       write,
	"/etcdserverpb.Lease/LeaseRevoke":      write,
	"/etcdserverpb.Lease/LeaseKeepAlive":   write,
	"/etcdserverpb.Cluster/MemberList":     allowed,
	"/etcdserverpb.Maintenance/Status":     allowed,
	"/etcdserverpb.Maintenance/Alarm":      allowed,
	"/etcdserverpb.Maintenance/Defragment": allowed,
	"/etcdserverpb.Maintenance/Snapshot":   allowed,
	"/etcdserverpb.Maintenance/MoveLeader": write,
	"/etcdserverpb.Maintenance/Downgrade":  write,
	"/grpc.health.v1.Health/Check":         allowed,
	"/grpc.health.v1.Health/Watch":         allowed,
	"/etcdserverpb.Cluster/MemberAdd":      write,
	"/etcdserverpb.Cluster/MemberRemove":   write,
	"/etcdserverpb.Cluster/MemberUpdate":   write,
	"/etcdserverpb.Cluster/MemberPromote":  write,
	"/etcdserverpb.Auth/AuthEnable":        write,
	"/etcdserverpb.Auth/AuthDisable":       write,
}

// gate lets calls through or answers them itself.
type gate struct {
	authorize func(*x509.Certificate) bool
}

func (g gate) check(ctx context.Context, method string) error {
	cert := peerCertificate(ctx)
	if cert == nil || !g.authorize(cert) {
		return status.Error(codes.PermissionDenied, reasonCert)
	}
	switch calls[method] {
	case allowed:
		return nil
	case write:
		return status.Error(codes.PermissionDenied, reasonAdmission)
	}
	return status.Error(codes.Unimplemented, reasonUnserved)
}

func peerCertificate(ctx context.Context) *x509.Certificate {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return nil
	}
	return info.State.VerifiedChains[0][0]
}

func (g gate) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := g.check(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	switch r := req.(type) {
	case *pb.DefragmentRequest:
		// Done when it is worth its standstill, not when a client says so.
		return &pb.DefragmentResponse{}, nil
	case *pb.AlarmRequest:
		if r.Action != pb.AlarmRequest_GET {
			return nil, status.Error(codes.PermissionDenied, reasonUnserved)
		}
	}
	return next(ctx, req)
}

func (g gate) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := g.check(ss.Context(), info.FullMethod); err != nil {
		return err
	}
	return next(srv, ss)
}

// ServeReadOnly serves the protocol of the seated member on l to clients whose verified certificate is authorized, until ctx ends. While
// the seat is empty every call is answered with Unavailable. It closes l. The configuration must verify client certificates.
func (s *Seat) ServeReadOnly(ctx context.Context, l net.Listener, tlsConfig *tls.Config, authorize func(*x509.Certificate) bool) error {
	cfg := tlsConfig.Clone()
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	cfg.NextProtos = []string{"h2"}
	g, relay := gate{authorize}, newRelay(l)
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
	if m := s.member.Load(); m != nil && m.Err() == nil {
		return v3rpc.Server(m.server, nil, g.unary, grpc.Creds(creds), grpc.ChainStreamInterceptor(g.stream)), m.Failed()
	}
	return grpc.NewServer(grpc.Creds(creds), grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return status.Error(codes.Unavailable, reasonAway)
	})), next
}
