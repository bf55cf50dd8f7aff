package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/nodeactor/nodeactor/store/engine"
)

const (
	// crashDirEnv makes the test binary a writer to be killed, on the directory it names.
	crashDirEnv = "NODEACTOR_TEST_CRASH_DIR"
	// crashRoundEnv is the round the writer is in.
	crashRoundEnv = "NODEACTOR_TEST_CRASH_ROUND"
	crashWriters  = 64
	crashRounds   = 4
	crashAcks     = 3000
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirEnv); dir != "" {
		writeUntilKilled(dir, os.Getenv(crashRoundEnv))
	}
	os.Exit(m.Run())
}

// writeUntilKilled writes with many writers and prints each key once its write has been acknowledged.
func writeUntilKilled(dir, round string) {
	s, err := tryOpen(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var mu sync.Mutex
	for w := range crashWriters {
		go func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("/registry/pods/round-%s/%d-%d", round, w, n)
				res, err := s.Backend().Engine.Txn(context.Background(), engine.Write{Key: key, Value: []byte(key)})
				if err != nil || !res.Done {
					fmt.Fprintln(os.Stderr, "cannot write", key, res, err)
					os.Exit(1)
				}
				mu.Lock()
				fmt.Println(key)
				mu.Unlock()
			}
		}()
	}
	select {}
}

func TestAcknowledgedWritesSurviveKill(t *testing.T) {
	dir := t.TempDir()
	var acked []string
	for round := range crashRounds {
		acked = append(acked, writeAndKill(t, dir, round)...)
		s, err := tryOpen(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range acked {
			if item, ok := s.Get(key); !ok || string(item.Value) != key {
				t.Fatalf("round %d: %s was acknowledged and is gone", round, key)
			}
		}
		closeStore(t, s)
	}
	t.Logf("%d acknowledged writes survived %d kills", len(acked), crashRounds)
}

// writeAndKill runs one writer process, kills it in the middle, and returns what it had acknowledged.
func writeAndKill(t *testing.T, dir string, round int) (acked []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDirEnv+"="+dir, fmt.Sprintf("%s=%d", crashRoundEnv, round))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for killed := false; ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		acked = append(acked, strings.TrimSpace(line))
		if len(acked) >= crashAcks && !killed {
			killed = true
			_ = cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); len(acked) < crashAcks {
		t.Fatalf("only %d writes were acknowledged: %v", len(acked), err)
	}
	return acked
}
