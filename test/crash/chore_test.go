package crash

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// keepSnapshots is how many of the snapshots that chores have saved are left on the disk.
const keepSnapshots = 3

// chore is what the store does beside the writers when the kill comes.
type chore struct {
	name string
	do   func(ctx context.Context, n *node, all []*writer)
}

func chooseChore(rnd *rand.Rand) chore {
	switch k := rnd.IntN(10); {
	case k < 3:
		return chore{"compaction", compact}
	case k < 6:
		return chore{"snapshot", save}
	}
	return chore{name: "nothing beside"}
}

// compact forgets all history, over and over, through the etcd API.
func compact(ctx context.Context, n *node, _ []*writer) {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(n.dir, "admin.kubeconfig"))
	if err != nil {
		return
	}
	tls, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{n.etcd}, TLS: tls, DialTimeout: time.Second, Context: ctx, Logger: zap.NewNop()})
	if err != nil {
		return
	}
	defer c.Close()
	for ctx.Err() == nil {
		at, err := c.Get(ctx, "/", clientv3.WithCountOnly())
		if err != nil {
			return
		}
		if _, err := c.Compact(ctx, at.Header.Revision); err == nil {
			n.compactions.Add(1)
		}
	}
}

// save saves snapshots through the local socket, over and over.
func save(ctx context.Context, n *node, _ []*writer) {
	n.thinSnapshots()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(n.dir, "nodeactor.sock"))
	}}}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://node/snapshots", nil)
		if err != nil {
			return
		}
		resp, err := client.Do(req)
		if err != nil {
			return
		}
		said, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if bytes.Contains(said, []byte(`"saved"`)) {
			n.snapshots.Add(1)
		}
	}
}

// counters are what was really done by chores.
type counters struct{ compactions, snapshots atomic.Int64 }

// thinSnapshots removes all but the newest snapshots: those of chores are kept for ever.
func (n *node) thinSnapshots() {
	all, _ := filepath.Glob(filepath.Join(n.dir, "snapshots", "*.db"))
	slices.Sort(all)
	for _, path := range all[:max(0, len(all)-keepSnapshots)] {
		os.Remove(path)
	}
}
