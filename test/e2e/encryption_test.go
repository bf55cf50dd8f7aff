package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hidden is the content of the Secrets of this test.
const hidden = "the-content-of-a-secret-0123456789"

// encryptionConfig is a configuration whose first key encrypts; keys are given as name=character.
func encryptionConfig(keys ...string) string {
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n  - aescbc:\n      keys:\n"
	for _, k := range keys {
		name, c, _ := strings.Cut(k, "=")
		text += fmt.Sprintf("      - {name: %s, secret: %s}\n", name, base64.StdEncoding.EncodeToString([]byte(strings.Repeat(c, 32))))
	}
	return text + "  - identity: {}\n"
}

// onDisk tells whether a file of the store holds text.
func (h *host) onDisk(text string) (found bool) {
	h.t.Helper()
	must(h.t, filepath.WalkDir(filepath.Join(h.dir, "store"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		found = found || bytes.Contains(raw, []byte(text))
		return err
	}))
	return found
}

// reads proves that kubectl reads the Secret.
func (h *host) reads(name string) {
	h.t.Helper()
	if out := h.kubectl("get", "secret", name, "-o", "jsonpath={.data.password}"); out != base64.StdEncoding.EncodeToString([]byte(hidden)) {
		h.t.Fatalf("secret %s reads %q", name, out)
	}
}

// TestSecretsAreEncryptedAtRest walks the documents' way with the real program and kubectl: encrypt, rotate, take the old key away.
func TestSecretsAreEncryptedAtRest(t *testing.T) {
	h := newHost(t, 21)
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	must(t, os.WriteFile(file, []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resourcez: []\n"), 0o600))
	flag := "--encryption-provider-config=" + file
	h.refused(t, []string{file, "resources[0].resourcez", "correct it"}, h.args(flag)...)
	must(t, os.WriteFile(file, []byte(encryptionConfig("one=1")), 0o600))
	h.start(flag)
	h.kubectl("create", "secret", "generic", "a", "--from-literal=password="+hidden)
	h.reads("a")
	if h.onDisk(hidden) || !h.onDisk("k8s:enc:aescbc:v1:one:") {
		t.Fatal("the Secret is not encrypted on disk")
	}
	h.kubectl("create", "configmap", "open", "--from-literal=x="+hidden)
	if !h.onDisk(hidden) {
		t.Fatal("looking on disk finds nothing")
	}
	must(t, os.WriteFile(file, []byte(encryptionConfig("two=2", "one=1")), 0o600))
	h.eventually(40*time.Second, "the changed file to be in use", func() error { return h.logged("the changed encryption configuration is in use") })
	h.replaceSecrets()
	h.eventually(podLimit, "the Secret under its new key", func() error {
		if !h.onDisk("k8s:enc:aescbc:v1:two:") {
			return errNot
		}
		return nil
	})
	h.kill()
	must(t, os.WriteFile(file, []byte(encryptionConfig("two=2")), 0o600))
	h.start(flag)
	h.reads("a")
	if err := h.logged("stored objects cannot be decrypted"); err == nil {
		t.Fatal("an object was left behind with the old key")
	}
	h.stop()
	h.start() // without the keys
	if _, err := h.try("get", "secret", "a"); err == nil || !strings.Contains(err.Error(), "--encryption-provider-config") {
		t.Fatalf("without keys: %v", err)
	}
	h.kubectl("get", "configmap", "open")
	must(t, h.logged("stored objects cannot be decrypted"))
	mustContain(t, "the status without keys", h.tool("status"), "[~]encrypted-objects: 1 stored", "start with --encryption-provider-config", "/registry/secrets/default/a")
}

// replaceSecrets writes all Secrets anew, as the documents tell.
func (h *host) replaceSecrets() {
	h.t.Helper()
	all := h.kubectl("get", "secrets", "-A", "-o", "json")
	_, err := h.run(podLimit, []byte(all), "kubectl", "replace", "-f", "-")
	must(h.t, err)
}

// logged tells whether the node's log says text.
func (h *host) logged(text string) error {
	raw, err := os.ReadFile(h.logPath())
	if err == nil && !bytes.Contains(raw, []byte(text)) {
		return notYet("the log does not say %q", text)
	}
	return err
}
