package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStoreElsewhereIsValidated(t *testing.T) {
	base := Config{StoreEndpoints: "https://10.0.0.1:2379, https://10.0.0.2:2379", NodeName: "n"}
	good := base.WithDefaults()
	if err := good.Validate(); err != nil || good.EtcdAddr != "off" || good.SnapshotEvery != "off" || len(good.endpoints()) != 2 {
		t.Fatalf("%v: etcd %q, snapshots %q, %v", err, good.EtcdAddr, good.SnapshotEvery, good.endpoints())
	}
	for what, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"scheme":          {func(c *Config) { c.StoreEndpoints = "http://10.0.0.1:2379" }, "https://"},
		"one of two":      {func(c *Config) { c.StoreEndpoints += ",10.0.0.3:2379" }, "10.0.0.3:2379"},
		"only commas":     {func(c *Config) { c.StoreEndpoints = "," }, "no endpoint"},
		"etcd listener":   {func(c *Config) { c.EtcdAddr = "127.0.0.1:2379" }, "etcdAddr"},
		"etcd writes":     {func(c *Config) { c.EtcdWrites = true }, "etcdWrites"},
		"quota":           {func(c *Config) { c.StoreQuota = "1Gi" }, "storeQuota"},
		"loss":            {func(c *Config) { c.AcceptDataLoss = true }, "--accept-data-loss"},
		"file for no-one": {func(c *Config) { c.StoreEndpoints, c.StoreCertFile = "", "x" }, "storeCertFile"},
	} {
		t.Run(what, func(t *testing.T) {
			bad := base
			c.change(&bad)
			if err := bad.WithDefaults().Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestAnotherStoreIsRefused: beginning with another store is beginning with another cluster, which has none of this node's pods.
func TestAnotherStoreIsRefused(t *testing.T) {
	dir := t.TempDir()
	own := Config{DataDir: dir, NodeName: "n"}.WithDefaults()
	elsewhere := Config{DataDir: dir, NodeName: "n", StoreEndpoints: "https://10.0.0.1:2379"}.WithDefaults()
	if err := sameStore(elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := remember(elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := sameStore(own); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "https://10.0.0.1:2379") {
		t.Fatalf("from elsewhere to its own: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, StoreDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := sameStore(elsewhere); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), filepath.Join(dir, StoreDir)) {
		t.Fatalf("from its own to elsewhere: %v", err)
	}
}
