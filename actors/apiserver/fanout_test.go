package apiserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/nodeactor/nodeactor/store/adapter"
)

const (
	metadataAs = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	tableAs    = ";as=Table;g=meta.k8s.io;v=v1"
	asJSON     = "application/json"
	asProtobuf = "application/vnd.kubernetes.protobuf"
)

// formats are what clients of built-in resources ask for; custom resources have no protobuf of their own.
var (
	builtinFormats = []string{asJSON, asProtobuf, asJSON + tableAs, asJSON + metadataAs, asProtobuf + metadataAs}
	customFormats  = []string{asJSON, asJSON + tableAs, asJSON + metadataAs, asProtobuf + metadataAs}
)

// rawClient speaks to the API over TLS and leaves what it says as it is. Each has a connection of its own.
type rawClient struct {
	*http.Client
	host string
}

func newRawClient(t *testing.T, config *rest.Config) rawClient {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return rawClient{&http.Client{Transport: transport}, config.Host}
}

// open asks for a path in a format and returns the body of the answer, which must be good.
func (c rawClient) open(ctx context.Context, t *testing.T, path, accept string) io.ReadCloser {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s as %s: %s: %s", path, accept, resp.Status, body)
	}
	return resp.Body
}

// frames hands out one event of a watch after the other, until f is satisfied.
func frames(body io.Reader, accept string, f func(frame []byte) bool) error {
	r := bufio.NewReaderSize(body, 1<<16)
	for {
		frame, err := nextFrame(r, strings.HasPrefix(accept, asProtobuf))
		if err != nil {
			return err
		}
		if f(frame) {
			return nil
		}
	}
}

func nextFrame(r *bufio.Reader, protobuf bool) ([]byte, error) {
	if !protobuf {
		return r.ReadBytes('\n')
	}
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(r, frame)
	return frame, err
}

// TestAnEventIsEncodedOncePerFormat: a hundred watchers over the network, in every format there is, cost one encoding per event and format. A
// Table comes with its columns or without them, and upstream's encoder decides that per watcher, so behind the first event it may be two.
func TestAnEventIsEncodedOncePerFormat(t *testing.T) {
	f := newFixture(t)
	custom := define(t, f).Namespace("default")
	config := f.listen(t)
	t.Run("built in", func(t *testing.T) {
		countEncodings(t, f, config, "/api/v1/namespaces/default/configmaps", builtinFormats, func(name string) error {
			_, err := f.admin.CoreV1().ConfigMaps("default").Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err
		})
	})
	t.Run("custom", func(t *testing.T) {
		countEncodings(t, f, config, "/apis/example.com/v1/namespaces/default/widgets", customFormats, func(name string) error {
			_, err := custom.Create(f.ctx, widget(name, map[string]any{}), metav1.CreateOptions{})
			return err
		})
	})
}

func countEncodings(t *testing.T, f *fixture, config *rest.Config, path string, formats []string, create func(name string) error) {
	const watchers, events = 100, 3
	settle(t, f)
	client := newRawClient(t, config)
	seen := make(chan error, watchers)
	last := []byte(fmt.Sprintf("fanout-%d", events))
	for i := range watchers {
		accept := formats[i%len(formats)]
		body := client.open(f.ctx, t, path+"?watch=1&resourceVersion="+fmt.Sprint(f.store.Revision()), accept)
		go func() {
			seen <- frames(body, accept, func(frame []byte) bool { return bytes.Contains(frame, last) })
		}()
	}
	sentBefore, encodedBefore := adapter.Fanout()
	for i := range events {
		if err := create(fmt.Sprintf("fanout-%d", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	for range watchers {
		if err := <-seen; err != nil {
			t.Fatal(err)
		}
	}
	sent, encoded := adapter.Fanout()
	if sent -= sentBefore; sent != watchers*events {
		t.Errorf("%d events were sent, want %d", sent, watchers*events)
	}
	encoded -= encodedBefore
	if least := int64(len(formats) * events); encoded < least || encoded > least+events-1 {
		t.Errorf("%d encodings were made of %d events in %d formats", encoded, events, len(formats))
	}
}

// TestInitialEventsEndWithABookmark: a watch that asks for the state first is told where it ends, in every format.
func TestInitialEventsEndWithABookmark(t *testing.T) {
	f := newFixture(t)
	custom := define(t, f).Namespace("default")
	for i := range 3 {
		name := fmt.Sprintf("begin-%d", i)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := f.admin.CoreV1().ConfigMaps("default").Create(f.ctx, object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := custom.Create(f.ctx, widget(name, map[string]any{}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	client := newRawClient(t, f.listen(t))
	const query = "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&resourceVersion="
	for path, formats := range map[string][]string{
		"/api/v1/namespaces/default/configmaps":           builtinFormats,
		"/apis/example.com/v1/namespaces/default/widgets": customFormats,
	} {
		for _, accept := range formats {
			t.Run(path[strings.LastIndex(path, "/")+1:]+" "+accept, func(t *testing.T) {
				objects := 0
				err := frames(client.open(f.ctx, t, path+query, accept), accept, func(frame []byte) bool {
					if bytes.Contains(frame, []byte("begin-")) {
						objects++
					}
					return bytes.Contains(frame, []byte(metav1.InitialEventsAnnotationKey))
				})
				if err != nil || objects != 3 {
					t.Errorf("the bookmark came after %d of 3 objects: %v", objects, err)
				}
			})
		}
	}
}

// TestABookmarkComesBeforeTheTimeout: a watch about to time out tells where to resume, though nothing has happened.
func TestABookmarkComesBeforeTheTimeout(t *testing.T) {
	f := newFixture(t)
	settle(t, f)
	client := newRawClient(t, f.listen(t))
	path := fmt.Sprintf("/api/v1/namespaces/default/configmaps?watch=1&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion=%d", f.store.Revision())
	want := []byte(fmt.Sprintf(`"resourceVersion":"%d"`, f.store.Revision()))
	body := client.open(f.ctx, t, path, asJSON)
	begin := time.Now()
	err := frames(body, asJSON, func(frame []byte) bool {
		return bytes.Contains(frame, []byte(`"BOOKMARK"`)) && bytes.Contains(frame, want)
	})
	if took := time.Since(begin); err != nil || took > 3*time.Second {
		t.Errorf("no bookmark in time (%v): %v", took, err)
	}
}

// TestAWatcherThatDoesNotRead holds up nobody and holds little; when it reads on it gets every event, and when its events have been forgotten
// it is told so.
func TestAWatcherThatDoesNotRead(t *testing.T) {
	f := newFixture(t)
	settle(t, f)
	config := f.listen(t)
	const updates, payload = 900, 32 << 10 // more than the ring has, and than connections take
	path := "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=" + fmt.Sprint(f.store.Revision())
	stuck := newRawClient(t, config).open(f.ctx, t, path, asJSON)
	lost := newRawClient(t, config).open(f.ctx, t, path, asJSON)
	others := newRawClient(t, config)
	done := make(chan error, 3)
	final := []byte(fmt.Sprintf(`"n":"%d"`, updates))
	for range cap(done) {
		body := others.open(f.ctx, t, path, asJSON)
		go func() {
			done <- frames(body, asJSON, func(frame []byte) bool { return bytes.Contains(frame, final) })
		}()
	}
	writeMany(t, f, updates, payload)
	for range cap(done) {
		if err := <-done; err != nil {
			t.Fatalf("a watcher that reads: %v", err)
		}
	}
	read := 0
	err := frames(stuck, asJSON, func(frame []byte) bool {
		if read++; !bytes.Contains(frame, []byte(fmt.Sprintf(`"n":"%d"`, read))) {
			t.Fatalf("event %d is %.300s", read, frame)
		}
		return read == updates
	})
	if err != nil {
		t.Fatalf("the watcher that read late got %d of %d events: %v", read, updates, err)
	}
	if err := f.store.CompactTo(f.ctx, f.store.Revision()); err != nil {
		t.Fatal(err)
	}
	gone := false
	_ = frames(lost, asJSON, func(frame []byte) bool {
		gone = gone || bytes.Contains(frame, []byte(`"ERROR"`)) && bytes.Contains(frame, []byte(`"code":410`))
		return gone
	})
	if !gone {
		t.Error("the watcher that never read was not told that its events are gone")
	}
}

// writeMany creates an object and updates it until it has been written n times; each version has its number in it.
func writeMany(t *testing.T, f *fixture, n, payload int) {
	t.Helper()
	maps := f.admin.CoreV1().ConfigMaps("default")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "versions"}, Data: map[string]string{"payload": strings.Repeat("x", payload), "n": "1"}}
	if _, err := maps.Create(f.ctx, object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := 2; i <= n; i++ {
		object.Data["n"] = fmt.Sprint(i)
		if _, err := maps.Update(f.ctx, object, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestP12_VersionsNeverGoDown: over restarts of the server and its store, a client that goes on where it was gets every event since, built in
// and custom, and no resource version is lower than one that it has seen.
func TestP12_VersionsNeverGoDown(t *testing.T) {
	dir := t.TempDir()
	var seen int64
	var want []string
	for life := range 3 {
		t.Run(fmt.Sprint(life), func(t *testing.T) {
			f := newFixtureIn(t, dir, Config{})
			client := newRawClient(t, f.listen(t))
			if now := f.store.Revision(); now < seen {
				t.Fatalf("the store came back at %d, a client has seen %d", now, seen)
			}
			if life > 0 {
				resumed(t, f, client, seen, want)
			}
			seen, want = f.store.Revision(), nil
			maps := f.admin.CoreV1().ConfigMaps("default")
			for i := range 5 {
				name := fmt.Sprintf("life-%d-%d", life, i)
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
				stored, err := maps.Create(f.ctx, object, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				stored.Data = map[string]string{"a": "b"}
				if _, err := maps.Update(f.ctx, stored, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				if err := maps.Delete(f.ctx, name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				want = append(want, "ADDED "+name, "MODIFIED "+name, "DELETED "+name)
			}
		})
	}
}

// resumed compares what a watch from a revision of an earlier life says, in every format at once.
func resumed(t *testing.T, f *fixture, client rawClient, after int64, want []string) {
	t.Helper()
	var group sync.WaitGroup
	for _, accept := range builtinFormats {
		body := client.open(f.ctx, t, "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion="+fmt.Sprint(after), accept)
		group.Go(func() {
			n := 0
			err := frames(body, accept, func(frame []byte) bool {
				kind, name, _ := strings.Cut(want[n], " ")
				if !bytes.Contains(frame, []byte(kind)) || !bytes.Contains(frame, []byte(name)) {
					t.Errorf("%s: event %d is %.300q, want %s", accept, n, frame, want[n])
					return true
				}
				n++
				return n == len(want)
			})
			if err != nil {
				t.Errorf("%s: %d of %d events: %v", accept, n, len(want), err)
			}
		})
	}
	group.Wait()
}
