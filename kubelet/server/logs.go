package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/kubelet/logs"
	"github.com/nodeactor/nodeactor/kubelet/pod/core"
	"github.com/nodeactor/nodeactor/kubelet/podspec"
)

func (s *server) containerLogs(w http.ResponseWriter, r *http.Request) {
	t, no := s.find(r)
	if no != nil {
		no.write(w)
		return
	}
	o, err := s.logOptions(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	path, no := s.logPath(t, flag(r.URL.Query(), "previous"))
	if no != nil {
		no.write(w)
		return
	}
	o.Ended = s.Pods.Ended(string(t.pod.UID), strings.TrimPrefix(t.status.ContainerID, core.ContainerIDPrefix))
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.Context, cancel)()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := logs.Copy(ctx, flushed(w, o.Follow), path, o); err != nil && ctx.Err() == nil {
		fmt.Fprintf(w, "%v\n", err)
	}
}

// logPath is the log of the container's last run, or of the one before.
func (s *server) logPath(t target, previous bool) (string, *refusal) {
	attempt := int(t.status.RestartCount)
	switch {
	case previous && attempt == 0:
		return "", &refusal{http.StatusBadRequest, fmt.Sprintf("previous terminated container %q in pod %q not found", t.name, t.pod.Name)}
	case previous && t.status.State.Waiting == nil:
		attempt--
	case t.status.State.Waiting != nil && t.status.LastTerminationState.Terminated == nil:
		return "", &refusal{http.StatusBadRequest, fmt.Sprintf("container %q in pod %q is waiting to start: %s", t.name, t.pod.Name, t.status.State.Waiting.Reason)}
	}
	path := podspec.LogPath(s.PodDir(string(t.pod.UID)), t.name, attempt)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", &refusal{http.StatusNotFound, fmt.Sprintf("no log of container %q in pod %q (run %d)", t.name, t.pod.Name, attempt)}
	}
	return path, nil
}

func flag(q url.Values, name string) bool {
	v, err := strconv.ParseBool(q.Get(name))
	return err == nil && v || q.Has(name) && q.Get(name) == ""
}

func (s *server) logOptions(q url.Values) (logs.Options, error) {
	o := logs.Options{Follow: flag(q, "follow"), Timestamps: flag(q, "timestamps"), Sleep: s.Sleep}
	switch q.Get("stream") {
	case "", "All":
	case "Stdout", "Stderr":
		o.Stream = strings.ToLower(q.Get("stream"))
	default:
		return o, fmt.Errorf("invalid stream %q", q.Get("stream"))
	}
	var err error
	if o.TailLines, err = number(q, "tailLines"); err != nil {
		return o, err
	}
	if q.Get("tailLines") == "all" {
		o.TailLines = nil
	}
	if o.LimitBytes, err = number(q, "limitBytes"); err != nil {
		return o, err
	}
	seconds, err := number(q, "sinceSeconds")
	if err != nil {
		return o, err
	}
	if seconds != nil {
		o.Since = s.Now().Add(-time.Duration(*seconds) * time.Second)
	}
	if at := q.Get("sinceTime"); at != "" {
		if o.Since, err = time.Parse(time.RFC3339, at); err != nil {
			return o, fmt.Errorf("invalid sinceTime: %w", err)
		}
	}
	return o, nil
}

// number reads an optional count.
func number(q url.Values, name string) (*int64, error) {
	v := q.Get(name)
	if v == "" || v == "all" {
		return nil, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("invalid %s %q: a count is needed", name, v)
	}
	return &n, nil
}

// flusher sends on at once what a follower waits for.
type flusher struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func flushed(w http.ResponseWriter, follow bool) interface{ Write([]byte) (int, error) } {
	if !follow {
		return w
	}
	rc := http.NewResponseController(w)
	_ = rc.Flush()
	return flusher{w, rc}
}

// Write writes and flushes.
func (f flusher) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err == nil {
		err = f.rc.Flush()
	}
	return n, err
}
