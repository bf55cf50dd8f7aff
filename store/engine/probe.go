package engine

import (
	"context"
	"crypto/tls"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// Probe makes one call to a server of the member's protocol, over a connection of its own. Whatever the answer says, the server has
// accepted and answered; it touches no disk for it.
func Probe(ctx context.Context, cfg *tls.Config, addr string) error {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(credentials.NewTLS(cfg)))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	switch s := status.Convert(err); {
	case s.Code() == codes.Unavailable && s.Message() == reasonAway:
		return nil
	case s.Code() == codes.Unavailable, s.Code() == codes.DeadlineExceeded, s.Code() == codes.Canceled:
		return err
	}
	return nil
}
