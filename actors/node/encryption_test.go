package node

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/store/engine"
)

// TestMissingKeysAreSaid: a node that was started without the keys of what it has stored says so on /readyz, without names, and to those on the
// host with names and the flag.
func TestMissingKeysAreSaid(t *testing.T) {
	p := ported(t)
	if p.sealedNote() != nil || p.storeLine().Note != "" {
		t.Fatalf("with nothing stored: %v, %q", p.sealedNote(), p.storeLine().Note)
	}
	s, _ := p.store.get()
	write := engine.Write{Key: "/registry/secrets/ns/mine", Value: []byte("k8s:enc:aescbc:v1:one:xxxx")}
	res, err := s.Backend().Engine.Txn(context.Background(), write)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Backend().Index.Wait(context.Background(), res.Revision); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.followEncryption(ctx) }()
	for begin := time.Now(); p.sealedNote() == nil && time.Since(begin) < 5*time.Second; {
		time.Sleep(time.Millisecond)
	}
	stop()
	<-ended
	note, line := p.sealedNote(), p.storeLine().Note
	if note == nil || !strings.Contains(note.Error(), "1 stored objects cannot be decrypted") || strings.Contains(note.Error(), "mine") {
		t.Errorf("everybody is told %v", note)
	}
	if !strings.Contains(line, "--encryption-provider-config") || !strings.Contains(line, "/registry/secrets/ns/mine") {
		t.Errorf("the host is told %q", line)
	}
}
