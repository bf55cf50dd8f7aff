package storage

import (
	"bytes"
	"encoding/gob"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestStrangersAtTheSocket: whatever somebody says to the host, the host goes on, and who speaks another version is told.
func TestStrangersAtTheSocket(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenShared(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	path := filepath.Join(dir, socketName)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != fileMode {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	hello := func(r request) []byte {
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(r); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, said := range map[string][]byte{
		"nothing":          nil,
		"garbage":          bytes.Repeat([]byte("garbage"), 100),
		"an endless size":  {0xf8, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3},
		"half a request":   hello(request{Seq: 1, Op: opGet, ID: ID{Kind: "K", Name: "n"}})[:20],
		"no such op":       hello(request{Seq: 1, Op: 200}),
		"no session":       hello(request{Seq: 1, Op: opRenew}),
		"an unknown feed":  hello(request{Op: opUnwatch, Feed: 77}),
		"an unknown place": hello(request{Seq: 1, Op: opPage, Bucket: "none"}),
	} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(said); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.Close()
		if _, err := s.Write(t.Context(), Write{ID: ID{Kind: "K", Name: name}}); err != nil || !s.Hosting() {
			t.Fatalf("after %s: %v", name, err)
		}
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(hello(request{Seq: 1, Op: opHello, Version: wireVersion + 1})); err != nil {
		t.Fatal(err)
	}
	var r reply
	if err := gob.NewDecoder(conn).Decode(&r); err != nil || !errors.Is(r.Fault.err(), ErrVersion) {
		t.Errorf("another version is told %+v, %v", r, err)
	}
}
