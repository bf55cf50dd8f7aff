package identity

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// at returns an identity in dir whose clock stands at the time the pointer holds.
func at(t *testing.T, dir string, now *time.Time) *Identity {
	t.Helper()
	i, err := Load(dir, WithNow(func() time.Time { return *now }))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func certificate(t *testing.T, c *tls.Config) *x509.Certificate {
	t.Helper()
	got, err := c.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return got.Leaf
}

var hosts = APIServerHosts("node-1", net.IPv4(10, 96, 0, 1), net.IPv4(192, 0, 2, 7), net.IPv4zero)

func TestServerCertificateNamesEveryHost(t *testing.T) {
	now := time.Now()
	i := at(t, t.TempDir(), &now)
	config, err := i.ServerTLS(hosts)
	if err != nil {
		t.Fatal(err)
	}
	cert := certificate(t, config)
	for _, host := range []string{"127.0.0.1", "localhost", "node-1", "192.0.2.7", "10.96.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"} {
		if err := cert.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	if cert.VerifyHostname("0.0.0.0") == nil {
		t.Error("the unspecified address is a host")
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: i.CAPool(), CurrentTime: now}); err != nil {
		t.Error(err)
	}
}

func TestLoadTwiceGivesTheSame(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	first, second := at(t, dir, &now), at(t, dir, &now)
	if !slices.Equal(first.CAPEM(), second.CAPEM()) || !first.ServiceAccountKey().Equal(second.ServiceAccountKey()) {
		t.Error("a second load made new keys")
	}
	a, err := first.ServerTLS(hosts)
	if err != nil {
		t.Fatal(err)
	}
	b, err := second.ServerTLS(hosts)
	if err != nil {
		t.Fatal(err)
	}
	if !certificate(t, a).Equal(certificate(t, b)) {
		t.Error("a second load made a new certificate")
	}
	c, err := second.ServerTLS(Hosts{Names: []string{"other"}})
	if err != nil {
		t.Fatal(err)
	}
	if certificate(t, b).Equal(certificate(t, c)) {
		t.Error("a certificate without the host was kept")
	}
}

func TestRenewalAtTwoThirdsOfLife(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	i := at(t, dir, &now)
	config, err := i.ServerTLS(hosts)
	if err != nil {
		t.Fatal(err)
	}
	first := certificate(t, config)
	now = now.Add(leafLife*2/3 - 2*time.Hour)
	if !certificate(t, config).Equal(first) {
		t.Error("renewed too early")
	}
	now = now.Add(4 * time.Hour)
	second := certificate(t, config)
	if second.Equal(first) || !second.NotAfter.After(first.NotAfter) {
		t.Error("not renewed")
	}
	if again, err := at(t, dir, &now).ServerTLS(hosts); err != nil || !certificate(t, again).Equal(second) {
		t.Errorf("the renewed certificate was not stored: %v", err)
	}
}

func TestRenewalFailureKeepsTheOldCertificate(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	i := at(t, dir, &now)
	config, err := i.ServerTLS(hosts)
	if err != nil {
		t.Fatal(err)
	}
	first := certificate(t, config)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	now = now.Add(leafLife - time.Hour)
	if !certificate(t, config).Equal(first) {
		t.Error("another certificate was shown than is stored")
	}
	now = now.Add(2 * time.Hour)
	if _, err := config.GetCertificate(nil); err == nil {
		t.Error("an expired certificate was shown")
	}
}

func TestFilesAreClosedToOthers(t *testing.T) {
	dir, now := filepath.Join(t.TempDir(), "pki"), time.Now()
	i := at(t, dir, &now)
	for _, open := range []func() error{
		func() error { _, err := i.ServerTLS(hosts); return err },
		func() error { _, err := i.AdminTLS(); return err },
		func() error { _, err := i.NodeTLS("n"); return err },
		func() error { _, err := i.KubeletClientTLS(); return err },
		func() error { _, err := i.FrontProxyTLS(); return err },
		func() error { _, err := i.KubeletServing("n", KubeletHosts("n")); return err },
		func() error { return i.WriteKubeconfig(filepath.Join(dir, "kubeconfig"), "https://127.0.0.1:6443") },
	} {
		if err := open(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, authorityFile), 0o644); err != nil {
		t.Fatal(err)
	}
	at(t, dir, &now)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if want := map[bool]fs.FileMode{true: dirMode, false: fileMode}[entry.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDamagedFilesAreNamed(t *testing.T) {
	now := time.Now()
	other := t.TempDir()
	foreign := at(t, other, &now)
	if _, err := foreign.ServerTLS(hosts); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(other, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	mixed := func(certFrom, keyFrom string) []byte {
		cert, _, _ := strings.Cut(string(read(certFrom)), "-----BEGIN PRIVATE")
		_, key, _ := strings.Cut(string(read(keyFrom)), "-----BEGIN PRIVATE")
		return []byte(cert + "-----BEGIN PRIVATE" + key)
	}
	for _, c := range []struct {
		file    string
		content []byte
		says    string
	}{
		{authorityFile, []byte("x"), "does not begin with a PEM certificate"},
		{authorityFile, mixed(authorityFile, apiServerFile), "key does not belong"},
		{authorityFile, read(apiServerFile), "not a certificate authority"},
		{serviceAccountFile, nil, "no PEM private key"},
		{serviceAccountFile, read(authorityCertFile), "no PEM private key"},
	} {
		dir := t.TempDir()
		at(t, dir, &now)
		path := filepath.Join(dir, c.file)
		if c.content == nil {
			c.content = []byte{}
		}
		if err := os.WriteFile(path, c.content, fileMode); err != nil {
			t.Fatal(err)
		}
		_, err := Load(dir, WithNow(func() time.Time { return now }))
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), "remov") {
			t.Errorf("%s: got %v, want %q", c.file, err, c.says)
		}
		if have, err := os.ReadFile(path); err != nil || !slices.Equal(have, c.content) {
			t.Errorf("%s was overwritten", c.file)
		}
	}
}

// A root that is gone is made anew and that is said with what it means; a first start is quiet.
func TestLostRootsAreSaid(t *testing.T) {
	for file, says := range map[string]string{
		serviceAccountFile:      "all ServiceAccount tokens issued so far are invalid",
		frontProxyAuthorityFile: "extension API servers",
		authorityFile:           "certificates and kubeconfigs",
	} {
		dir := t.TempDir()
		var said bytes.Buffer
		log := WithLog(slog.New(slog.NewTextHandler(&said, nil)))
		for range 2 {
			if _, err := Load(dir, log); err != nil || said.Len() > 0 {
				t.Fatalf("a first start and a usual one: %v, said %s", err, &said)
			}
		}
		path := filepath.Join(dir, file)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir, log); err != nil || !strings.Contains(said.String(), "level=ERROR") || !strings.Contains(said.String(), path) || !strings.Contains(said.String(), says) {
			t.Errorf("without %s: %v, said %s", file, err, &said)
		}
		if strings.Count(said.String(), "\n") != 1 {
			t.Errorf("without %s more is said: %s", file, &said)
		}
	}
}

// A leaf is issued again when its file is damaged or of another authority; the damaged file stays beside it.
func TestDamagedLeafIsReplaced(t *testing.T) {
	now, other := time.Now(), t.TempDir()
	if _, err := at(t, other, &now).ServerTLS(hosts); err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile(filepath.Join(other, apiServerFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range [][]byte{{}, []byte("x"), foreign[:200], foreign} {
		dir := t.TempDir()
		at(t, dir, &now)
		path := filepath.Join(dir, apiServerFile)
		if err := os.WriteFile(path, content, fileMode); err != nil {
			t.Fatal(err)
		}
		config, err := at(t, dir, &now).ServerTLS(hosts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := config.GetCertificate(nil); err != nil {
			t.Error(err)
		}
		if kept, err := os.ReadFile(path + damagedSuffix); err != nil || !slices.Equal(kept, content) {
			t.Errorf("the damaged file was not kept: %v", err)
		}
	}
}

func TestExpiredAuthorityIsRefused(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	at(t, dir, &now)
	_, err := Load(dir, WithNow(func() time.Time { return now.Add(authorityLife + time.Hour) }))
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "expired") {
		t.Errorf("got %v", err)
	}
	_, err = Load(dir, WithNow(func() time.Time { return now.Add(-time.Hour) }))
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "clock") {
		t.Errorf("got %v", err)
	}
}

func TestVerifyClient(t *testing.T) {
	now := time.Now()
	i, foreign := at(t, t.TempDir(), &now), at(t, t.TempDir(), &now)
	leaf := func(i *Identity) []*x509.Certificate {
		config, err := i.NodeTLS("n")
		if err != nil {
			t.Fatal(err)
		}
		cert, err := config.GetClientCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return []*x509.Certificate{cert.Leaf}
	}
	user, groups, err := i.VerifyClient(leaf(i))
	if err != nil || user != "system:node:n" || !slices.Equal(groups, []string{"system:nodes"}) {
		t.Errorf("got %s %v, %v", user, groups, err)
	}
	if _, _, err := i.VerifyClient(leaf(foreign)); err == nil {
		t.Error("a foreign certificate was believed")
	}
	if _, _, err := i.VerifyClient(nil); err == nil {
		t.Error("no certificate was believed")
	}
	serving, err := i.ServerTLS(hosts)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := i.VerifyClient([]*x509.Certificate{certificate(t, serving)}); err == nil {
		t.Error("a server's certificate was believed of a client")
	}
}

func TestKubeconfigLoads(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	i, path := at(t, dir, &now), filepath.Join(dir, "kubeconfig")
	for range 2 {
		if err := i.WriteKubeconfig(path, "https://127.0.0.1:6443"); err != nil {
			t.Fatal(err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil || config.Host != "https://127.0.0.1:6443" || len(config.CertData) == 0 || len(config.KeyData) == 0 || len(config.CAData) == 0 {
		t.Errorf("got %+v, %v", config, err)
	}
}
