package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfigIsCheckedBeforeUse(t *testing.T) {
	good := Config{NodeName: "n"}.WithDefaults()
	if err := good.Validate(); err != nil {
		t.Fatalf("the defaults are refused: %v", err)
	}
	for want, change := range map[string]func(*Config){
		"--node-name":           func(c *Config) { c.NodeName = "Not_A_Name" },
		`apiAddr "x"`:           func(c *Config) { c.APIAddr = "x" },
		"are one port":          func(c *Config) { c.APIAddr, c.EtcdAddr = "0.0.0.0:7000", "127.0.0.1:7000" },
		`kubeletAddr "h:1"`:     func(c *Config) { c.KubeletAddr = "h:1" },
		`etcdAddr "0.0.0.0"`:    func(c *Config) { c.EtcdAddr = "0.0.0.0" },
		"between 1 and 65535":   func(c *Config) { c.APIAddr = "0.0.0.0:65536" },
		"has the port 0":        func(c *Config) { c.EtcdAddr = "0.0.0.0:0" },
		"has the port -1":       func(c *Config) { c.KubeletAddr = ":-1" },
		"loopback":              func(c *Config) { c.PprofAddr = "0.0.0.0:1" },
		`podCIDR "10.1.0.1/24"`: func(c *Config) { c.PodCIDR = "10.1.0.1/24" },
		"too small":             func(c *Config) { c.ServiceCIDR = "10.1.0.0/30" },
		"overlap":               func(c *Config) { c.PodCIDR = "10.96.0.0/24" },
		"cgroupRoot":            func(c *Config) { c.CgroupRoot = "relative" },
		"maxPods":               func(c *Config) { c.MaxPods = -1 },
		"advertiseAddress":      func(c *Config) { c.AdvertiseAddress = "0.0.0.0" },
		"logLevel":              func(c *Config) { c.LogLevel = "loud" },
	} {
		c := good
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	for _, addr := range []string{":6443", "[::1]:6443", "0.0.0.0:1"} {
		c := good
		c.APIAddr = addr
		if err := c.Validate(); err != nil {
			t.Errorf("%s is refused: %v", addr, err)
		}
	}
}

func TestDataDirectoryHasOneOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if Owner(dir) != 0 {
		t.Error("an absent directory has an owner")
	}
	l, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := Owner(dir); got != os.Getpid() {
		t.Errorf("owner %d, want %d", got, os.Getpid())
	}
	if _, err := Lock(dir); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("a second lock gives %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if again, err := Lock(dir); err != nil {
		t.Errorf("a released directory is refused: %v", err)
	} else {
		again.Release()
	}
}

func TestRecallPrefersWhatIsGiven(t *testing.T) {
	dir := t.TempDir()
	ran := Config{DataDir: dir, CgroupRoot: "/ran", PodCIDR: "10.9.0.0/24", NodeName: "n"}.WithDefaults()
	if err := remember(ran); err != nil {
		t.Fatal(err)
	}
	if got := recall(Config{DataDir: dir}.WithDefaults()); got.CgroupRoot != "/ran" || got.PodCIDR != "10.9.0.0/24" {
		t.Errorf("recalled %+v", got)
	}
	if got := recall(Config{DataDir: dir, CgroupRoot: "/given"}.WithDefaults()); got.CgroupRoot != "/given" {
		t.Errorf("the given cgroup root is ignored: %s", got.CgroupRoot)
	}
	if got := (Config{DataDir: dir}).WithDefaults().NodeName; got != "n" {
		t.Errorf("the directory's node is called %s", got)
	}
	if err := remember(Config{DataDir: dir, NodeName: "other"}.WithDefaults()); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "--node-name n") {
		t.Errorf("another name is accepted: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, rememberFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := recall(Config{DataDir: dir}.WithDefaults()); got.CgroupRoot != defaultCgroupRoot(dir) {
		t.Errorf("a damaged file is believed: %+v", got)
	}
}
