package serve

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

func TestHolderNamesTheProcess(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got := Holder(l.Addr().String())
	if want := fmt.Sprintf("(pid %d)", os.Getpid()); !strings.HasSuffix(got, want) || strings.HasPrefix(got, " ") {
		t.Errorf("Holder = %q, want NAME %s", got, want)
	}
	l.Close()
	if got := Holder(l.Addr().String()); got != "" {
		t.Errorf("a free port is held by %q", got)
	}
	if got := Holder("nonsense"); got != "" {
		t.Errorf("nonsense is held by %q", got)
	}
}
