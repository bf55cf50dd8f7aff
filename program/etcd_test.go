package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/cluster/identity"
)

// TestReadersAreToldWhereTheStoreIs holds that whoever is given a certificate is given the address the node was told to serve at.
func TestReadersAreToldWhereTheStoreIs(t *testing.T) {
	for record, want := range map[string]string{
		`{}`:                            "--endpoints https://127.0.0.1:2379 get",
		`{"etcdAddr":"10.0.0.7:12379"}`: "--endpoints https://10.0.0.7:12379 get",
		`{"etcdAddr":":2479"}`:          "--endpoints https://HOST:2479 get",
		`{"etcdAddr":"off"}`:            "does not serve the etcd API: start it with --etcd-addr",
	} {
		dir := t.TempDir()
		if _, err := identity.Load(filepath.Join(dir, pkiDir)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "node.json"), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _, err := tool("etcd", "cert", "alice", "--out", filepath.Join(dir, "alice"), "--data-dir", dir)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want %q in\n%s", record, err, want, out)
		}
	}
}

func TestStatusSaysEachLineOnce(t *testing.T) {
	said := map[string]bool{}
	first := news("[+]store ok\n[-]core/cache failed: reason withheld\nreadyz check failed\n", said)
	second := news("[+]store ok\n[-]core/cache failed: reason withheld\n[-]api/server failed: it hangs\nlivez check failed\n", said)
	if strings.Count(first, "\n") != 3 || second != "[-]api/server failed: it hangs\nlivez check failed\n" {
		t.Errorf("said %q and %q", first, second)
	}
}
