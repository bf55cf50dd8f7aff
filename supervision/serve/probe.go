package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
)

// Probe asks a server something through its socket, as Config.Probe.
type Probe func(ctx context.Context, addr net.Addr) error

// HTTPProbe makes one request for path, over a connection of its own: whatever the answer says, the server has accepted
// and answered. client says who asks, and whom to trust; nil asks without TLS.
func HTTPProbe(client *tls.Config, path string) Probe {
	scheme := "http"
	if client != nil {
		client = client.Clone()
		client.NextProtos = []string{"http/1.1"}
		if client.ClientSessionCache == nil {
			client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		}
		scheme = "https"
	}
	return func(ctx context.Context, addr net.Addr) error {
		t := &http.Transport{DisableKeepAlives: true, TLSClientConfig: client, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return Dial(ctx, addr)
		}}
		defer t.CloseIdleConnections()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+host(addr)+path, http.NoBody)
		if err != nil {
			return err
		}
		resp, err := t.RoundTrip(req)
		if err != nil {
			return fmt.Errorf("cannot reach %s: %w", addr, err)
		}
		return resp.Body.Close()
	}
}

// Dial connects to the address a server is bound to; one that is bound to every address is called on the loopback.
func Dial(ctx context.Context, addr net.Addr) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, addr.Network(), Reachable(addr))
}

// Reachable is where a server that is bound to addr can be called from this host.
func Reachable(addr net.Addr) string {
	t, ok := addr.(*net.TCPAddr)
	if !ok || !t.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(t.Port))
}

// host is what the server's certificate is for.
func host(addr net.Addr) string {
	if _, ok := addr.(*net.TCPAddr); ok {
		return Reachable(addr)
	}
	return "localhost"
}
