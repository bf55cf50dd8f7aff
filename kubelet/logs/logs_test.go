package logs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path string, lines ...string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, l := range lines {
		fmt.Fprintf(f, "2024-01-01T00:00:%02d.5Z stdout F %s\n", i, l)
	}
}

func read(t *testing.T, path string, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Copy(t.Context(), &b, path, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCopyOptions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "one", "two", "three")
	n := func(i int64) *int64 { return &i }
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"all":        {Options{}, "one\ntwo\nthree\n"},
		"tail":       {Options{TailLines: n(2)}, "two\nthree\n"},
		"tail none":  {Options{TailLines: n(0)}, ""},
		"tail more":  {Options{TailLines: n(9)}, "one\ntwo\nthree\n"},
		"limit":      {Options{LimitBytes: n(5)}, "one\nt"},
		"since":      {Options{Since: time.Date(2024, 1, 1, 0, 0, 1, 0, time.UTC)}, "two\nthree\n"},
		"timestamps": {Options{TailLines: n(1), Timestamps: true}, "2024-01-01T00:00:02.5Z three\n"},
		"stderr":     {Options{Stream: "stderr"}, ""},
	} {
		if got := read(t, path, c.o); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestPartialLinesAreJoined(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	os.WriteFile(path, []byte("2024-01-01T00:00:00Z stdout P ab\n2024-01-01T00:00:00Z stdout F cd\nrubbish\n"), 0o600)
	if got := read(t, path, Options{Timestamps: true}); got != "2024-01-01T00:00:00Z abcd\n" {
		t.Errorf("got %q", got)
	}
}

func TestFollowReadsToTheEndAndThroughRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "one")
	ended := make(chan struct{})
	step := 0
	got := read(t, path, Options{Follow: true, Ended: ended, Sleep: func(context.Context, time.Duration) error {
		switch step++; step {
		case 1:
			write(t, path, "two")
		case 2:
			os.Rename(path, path+".1")
			write(t, path, "three")
		case 3:
			write(t, path, "four")
			close(ended)
		}
		return nil
	}})
	if got != "one\ntwo\nthree\nfour\n" {
		t.Errorf("got %q", got)
	}
}

func TestTailIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, strings.Repeat("x", 5000))
	got, err := Tail(path, 80, 2048)
	if err != nil || len(got) != 2048 {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if got, err := Tail(path+"x", 80, 2048); got != "" || err != nil {
		t.Errorf("missing log: %q, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("2024-01-01T00:00:00Z stdout F x\n"))
	f.Fuzz(func(t *testing.T, b []byte) { Parse(b) })
}
