package store_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/encryption"
	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/supervision"
)

// marker is what must never be found on disk.
const marker = "MARKER-of-a-secret-value-0123456789"

// key is 32 bytes that differ by n.
func key(n byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{n}, 32)) }

// provider is an entry of a configuration; several keys are given as name=number.
func provider(name string, keys ...string) string {
	if name == "identity" {
		return "  - identity: {}\n"
	}
	text := "  - " + name + ":\n      keys:\n"
	for _, k := range keys {
		keyName, n, _ := strings.Cut(k, "=")
		text += fmt.Sprintf("      - {name: %s, secret: %s}\n", keyName, key(n[0]))
	}
	return text
}

func configFile(t *testing.T, path, resources string, providers ...string) {
	t.Helper()
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [" + resources + "]\n  providers:\n" + strings.Join(providers, "")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// vault is a store with encryption and a storage of Secrets.
type vault struct {
	t       *testing.T
	dir     string
	file    string
	clock   movedClock
	store   *store.Store
	keys    *encryption.Encryption
	secrets storage.Interface
	widgets storage.Interface
}

// movedClock is the machine's, moved forward.
type movedClock struct {
	supervision.Clock
	ahead atomic.Int64
}

// Now implements supervision.Clock.
func (c *movedClock) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.ahead.Load())) }

type secretFactory struct{}

func (secretFactory) NewConfig(r schema.GroupResource, _ runtime.Object) (*storagebackend.ConfigForResource, error) {
	return storagebackend.NewDefaultConfig("/registry", scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion)).ForResource(r), nil
}
func (secretFactory) ResourcePrefix(r schema.GroupResource) string { return r.Resource }

func newVault(t *testing.T) *vault {
	return &vault{t: t, clock: movedClock{Clock: supervision.RealClock()}, dir: filepath.Join(t.TempDir(), "store"), file: filepath.Join(t.TempDir(), "encryption.yaml")}
}

// open opens the store; encrypted by the file unless there is none.
func (v *vault) open() {
	v.t.Helper()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	cfg := store.Config{Dir: v.dir, NodeName: "test", Log: log}
	if _, err := os.Stat(v.file); err == nil {
		if v.keys, err = encryption.Load(context.Background(), encryption.Config{File: v.file, Name: "test", Clock: &v.clock, Log: log}); err != nil {
			v.t.Fatal(err)
		}
		v.t.Cleanup(v.keys.Close)
		cfg.Encryption = v.keys
	}
	s, err := store.Open(context.Background(), cfg)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = s.Close(context.Background()) })
	v.store = s
	v.secrets = storageOf(v.t, s.RESTOptions(secretFactory{}), schema.GroupResource{Resource: "secrets"}, func() runtime.Object { return &corev1.Secret{} }, func() runtime.Object { return &corev1.SecretList{} })
	v.widgets = storageOf(v.t, s.CRDRESTOptions(), schema.GroupResource{Group: "example.com", Resource: "widgets"},
		func() runtime.Object { return &unstructured.Unstructured{} }, func() runtime.Object { return &unstructured.UnstructuredList{} })
}

func storageOf(t *testing.T, getter generic.RESTOptionsGetter, r schema.GroupResource, newFunc, newList func() runtime.Object) storage.Interface {
	t.Helper()
	o, err := getter.GetRESTOptions(r, newFunc())
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := o.Decorator(o.StorageConfig, "/"+o.ResourcePrefix, nil, newFunc, newList, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (v *vault) reopen() {
	v.t.Helper()
	closeStore(v.t, v.store)
	v.open()
}

func (v *vault) create(name string) {
	v.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{"password": []byte(marker)}}
	if err := v.secrets.Create(context.Background(), "/secrets/ns/"+name, s, &corev1.Secret{}, 0); err != nil {
		v.t.Fatal(err)
	}
}

// rewrite writes an object as it is, as kubectl replace does.
func (v *vault) rewrite(name string) {
	v.t.Helper()
	err := v.secrets.GuaranteedUpdate(context.Background(), "/secrets/ns/"+name, &corev1.Secret{}, false, nil,
		func(in runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) { return in, nil, nil }, nil)
	if err != nil {
		v.t.Fatal(err)
	}
}

func (v *vault) read(name string) error {
	v.t.Helper()
	var s corev1.Secret
	err := v.secrets.Get(context.Background(), "/secrets/ns/"+name, storage.GetOptions{}, &s)
	if err == nil && string(s.Data["password"]) != marker {
		v.t.Fatalf("%s: read %q", name, s.Data)
	}
	return err
}

// stored is the beginning of what the engine has for an object.
func (v *vault) stored(name string) string {
	v.t.Helper()
	page, err := v.store.Backend().Engine.Range(context.Background(), "/registry/secrets/ns/"+name, "", 0, 1)
	if err != nil || len(page.KVs) != 1 {
		v.t.Fatalf("%s: %d values, %v", name, len(page.KVs), err)
	}
	value := page.KVs[0].Value
	return string(value[:min(len(value), 28)])
}

func (v *vault) isStored(name, prefix string) {
	v.t.Helper()
	if got := v.stored(name); !strings.HasPrefix(got, prefix) {
		v.t.Fatalf("%s is stored as %q, want %q", name, got, prefix)
	}
}

// plainText finds the marker, as it is and as JSON has it.
func plainText(raw []byte) bool {
	return bytes.Contains(raw, []byte(marker)) || bytes.Contains(raw, []byte(base64.StdEncoding.EncodeToString([]byte(marker))))
}

// onDisk counts the files below the store that hold the marker.
func (v *vault) onDisk() (found []string) {
	v.t.Helper()
	err := filepath.WalkDir(v.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if plainText(raw) {
			found = append(found, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		v.t.Fatal(err)
	}
	return found
}

func (v *vault) reload() (bool, error) {
	return v.keys.Reload(context.Background(), v.store.Stored)
}

// TestSecretsAreEncryptedAtRest looks at what is really on disk: database, log and snapshot.
func TestSecretsAreEncryptedAtRest(t *testing.T) {
	for _, name := range []string{"aescbc", "aesgcm", "secretbox"} {
		t.Run(name, func(t *testing.T) {
			v := newVault(t)
			configFile(t, v.file, "secrets, '*.example.com'", provider(name, "one=1"), provider("identity"))
			v.open()
			v.create("a")
			v.isStored("a", "k8s:enc:"+name+":v1:one:")
			widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w", "namespace": "ns"}, "spec": marker}}
			if err := v.widgets.Create(context.Background(), "/example.com/widgets/ns/w", widget, &unstructured.Unstructured{}, 0); err != nil {
				t.Fatal(err)
			}
			var snapshot bytes.Buffer
			if err := v.store.Snapshot(context.Background(), &snapshot); err != nil {
				t.Fatal(err)
			}
			if plainText(snapshot.Bytes()) || !bytes.Contains(snapshot.Bytes(), []byte("k8s:enc:"+name)) {
				t.Fatal("the snapshot is not encrypted")
			}
			if found := v.onDisk(); len(found) > 0 {
				t.Fatalf("plain text in %v", found)
			}
			v.reopen()
			if err := v.read("a"); err != nil {
				t.Fatal(err)
			}
			item, _ := v.store.Get("/registry/example.com/widgets/ns/w")
			if plain, err := v.store.Plain(item); err != nil || !bytes.Contains(plain, []byte(marker)) {
				t.Fatalf("custom resource: %q, %v", plain, err)
			}
			closeStore(t, v.store)
			if found := v.onDisk(); len(found) > 0 {
				t.Fatalf("plain text in %v after the end", found)
			}
		})
	}
}

// TestTheDiskTestFindsPlainText: the test above would find it.
func TestTheDiskTestFindsPlainText(t *testing.T) {
	v := newVault(t)
	v.open()
	v.create("a")
	if len(v.onDisk()) == 0 {
		t.Fatal("a Secret that is not encrypted was not found on disk")
	}
}

// TestKeysRotate does what the documents say: new key first, everything written anew, old key away.
func TestKeysRotate(t *testing.T) {
	v := newVault(t)
	v.open()
	v.create("old")
	configFile(t, v.file, "secrets", provider("aescbc", "one=1"), provider("identity"))
	v.reopen()
	v.isStored("old", "{")
	v.rewrite("old")
	v.isStored("old", "k8s:enc:aescbc:v1:one:")
	before := v.store.Revision()
	if v.rewrite("old"); v.store.Revision() != before {
		t.Fatal("an object that was not changed and is well encrypted was written again")
	}
	configFile(t, v.file, "secrets", provider("aescbc", "two=2", "one=1"), provider("identity"))
	if changed, err := v.reload(); !changed || err != nil {
		t.Fatalf("reload: %v, %v", changed, err)
	}
	v.create("new")
	v.isStored("new", "k8s:enc:aescbc:v1:two:")
	configFile(t, v.file, "secrets", provider("aescbc", "two=2"))
	if changed, err := v.reload(); changed || err == nil || !strings.Contains(err.Error(), "/registry/secrets/ns/old") {
		t.Fatalf("a key that is needed was taken away: %v, %v", changed, err)
	}
	if err := v.read("old"); err != nil {
		t.Fatalf("after the refusal: %v", err)
	}
	if changed, err := v.reload(); changed || err != nil {
		t.Fatalf("the refusal was repeated: %v, %v", changed, err)
	}
	v.rewrite("old")
	v.isStored("old", "k8s:enc:aescbc:v1:two:")
	v.clock.ahead.Store(int64(2 * time.Minute)) // it is looked at again by itself
	if changed, err := v.reload(); !changed || err != nil {
		t.Fatalf("old key away: %v, %v", changed, err)
	}
	configFile(t, v.file, "secrets", provider("identity"), provider("aescbc", "two=2"))
	v.reopen()
	v.rewrite("old")
	v.rewrite("new")
	v.isStored("old", "{")
	if err := os.Remove(v.file); err != nil {
		t.Fatal(err)
	}
	v.reopen()
	for _, name := range []string{"old", "new"} {
		if err := v.read(name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatCannotBeDecryptedIsSaid: a store that was opened with the wrong keys or with none says so, names some objects and the flag, and says no
// more of an object once it was written anew or is gone.
func TestWhatCannotBeDecryptedIsSaid(t *testing.T) {
	v := newVault(t)
	configFile(t, v.file, "secrets", provider("secretbox", "one=1"))
	v.open()
	for _, name := range []string{"a", "b", "c", "d"} {
		v.create(name)
	}
	for what, c := range map[string]struct{ providers, want string }{
		"wrong key": {provider("secretbox", "one=2"), "cannot decrypt with the keys of " + v.file},
		"no keys":   {"", "start with --encryption-provider-config"},
	} {
		t.Run(what, func(t *testing.T) {
			if configFile(t, v.file, "secrets", c.providers); c.providers == "" {
				_ = os.Remove(v.file)
			}
			v.reopen()
			v.look()
			u := v.store.Undecryptable()
			if u == nil || len(u.Keys) != 4 {
				t.Fatalf("found %v", u)
			}
			for _, part := range []string{c.want, "4 stored objects cannot be decrypted", "/registry/secrets/ns/c and 1 more"} {
				if !strings.Contains(u.Error(), part) {
					t.Errorf("it does not say %q: %v", part, u)
				}
			}
			if strings.Contains(u.Brief(), "/registry") {
				t.Errorf("what everybody may know names objects: %s", u.Brief())
			}
		})
	}
	for i, name := range []string{"a", "b", "c", "d"} {
		v.remove(name)
		if u := v.store.Undecryptable(); i < 3 && (u == nil || len(u.Keys) != 3-i) || i == 3 && u != nil {
			t.Fatalf("after %d of 4 were removed: %v", i+1, u)
		}
	}
	configFile(t, v.file, "secrets", provider("secretbox", "one=1"))
	v.reopen()
	v.create("e")
	v.look()
	if u := v.store.Undecryptable(); u != nil {
		t.Fatalf("with the right key: %v", u)
	}
}

// look does what the API server's job does at its start.
func (v *vault) look() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.store.FollowEncryption(ctx) }()
	defer func() { cancel(); <-done }()
	// The configuration is looked at for changes only after ten seconds: what is found at the start is found long before.
	for begin := time.Now(); v.store.Undecryptable() == nil && time.Since(begin) < 300*time.Millisecond; {
		time.Sleep(5 * time.Millisecond)
	}
}

// remove deletes an object in the engine: the API could not, as it cannot read it.
func (v *vault) remove(name string) {
	v.t.Helper()
	write := engine.Write{Key: "/registry/secrets/ns/" + name, Expect: engine.AnyRevision, Delete: true}
	res, err := v.store.Backend().Engine.Txn(context.Background(), write)
	if err == nil {
		err = v.store.Backend().Index.Wait(context.Background(), res.Revision)
	}
	if err != nil {
		v.t.Fatal(err)
	}
}

// TestAMissingKeyConcernsItsObjects: the error says what to do, and other objects and other resources are as before.
func TestAMissingKeyConcernsItsObjects(t *testing.T) {
	v := newVault(t)
	configFile(t, v.file, "secrets", provider("secretbox", "one=1"))
	v.open()
	v.create("lost")
	for what, c := range map[string]struct {
		providers []string
		want      string
	}{
		"other name": {[]string{provider("secretbox", "two=2")}, "no matching key"},
		"wrong key":  {[]string{provider("secretbox", "one=2")}, "put the key"},
		"no keys":    {nil, "--encryption-provider-config"},
	} {
		t.Run(what, func(t *testing.T) {
			if c.providers == nil {
				_ = os.Remove(v.file)
				v.keys = nil
			} else {
				configFile(t, v.file, "secrets", c.providers...)
			}
			v.reopen()
			if err := v.read("lost"); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), key('1')) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			v.create("kept-" + what[:2])
			if err := v.read("kept-" + what[:2]); err != nil {
				t.Fatal(err)
			}
			opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
			if err := v.widgets.GetList(context.Background(), "/example.com/widgets", opts, &unstructured.UnstructuredList{}); err != nil {
				t.Fatalf("another resource's list: %v", err)
			}
			item, _ := v.store.Get("/registry/secrets/ns/lost")
			if _, err := v.store.Plain(item); err == nil {
				t.Fatal("decrypted without the key")
			}
		})
	}
}

func TestBadEncryptionFilesAreRefused(t *testing.T) {
	v := newVault(t)
	for what, c := range map[string]struct{ text, want string }{
		"no file":       {"", "no such file or directory; put it back from a copy"},
		"not YAML":      {"apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: [\n", "line"},
		"unknown field": {"apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resourcez: [secrets]\n", "resourcez"},
		"other kind":    {"apiVersion: v1\nkind: Secret\n", "Secret"},
		"no resources":  {"apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n", "resources"},
		"short key": {"apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n  - aescbc:\n      keys:\n      - {name: a, secret: c2hvcnQ=}\n",
			"resources[0].providers[0].aescbc.keys[0].secret"},
	} {
		t.Run(what, func(t *testing.T) {
			_ = os.Remove(v.file)
			if c.text != "" {
				if err := os.WriteFile(v.file, []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := encryption.Load(context.Background(), encryption.Config{File: v.file, Clock: supervision.RealClock(), Log: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), v.file) || !strings.Contains(err.Error(), "start again") {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("more than a line: %v", err)
			}
			t.Log(err)
		})
	}
}
