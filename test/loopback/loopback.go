// Package loopback finds addresses on loopback that nobody listens on.
package loopback

import (
	"net"
	"testing"
)

// Free is such an address. Somebody else may take it before the caller does.
func Free(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
