package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/nodeactor/nodeactor/kubelet/runtime"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// rotateEvery is how often the size of logs is looked at.
	rotateEvery    = 10 * time.Second
	rotateDeadline = time.Minute
	// maxLogBytes is how large a log grows before it is rotated, maxLogFiles how many files of one are kept in all.
	maxLogBytes = 10 << 20
	maxLogFiles = 5
)

// rotateJob names the job, after which the next is planned.
const rotateJob = "rotate"

type rotateTime struct{}

// rotateLogs keeps the logs of running containers within their bound.
func (s *syncChild) rotateLogs(ctx supervision.Context) {
	log := ctx.Log()
	ctx.Go(supervision.Job{Name: rotateJob, Deadline: rotateDeadline, Run: func(c context.Context, _ func()) (any, error) {
		records, err := s.Runtime.List(c)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			for _, cont := range r.Containers {
				if cont.State != runtime.Running {
					continue
				}
				if err := rotate(c, s.Runtime, cont, maxLogBytes); err != nil {
					log.Warn("cannot rotate a container's log", "pod", r.Spec.Namespace+"/"+r.Spec.Name, "container", cont.Name, "error", err)
				}
			}
		}
		return nil, nil
	}})
}

// rotate renames the log if it is larger than limit and lets the container's shim begin a new one.
func rotate(ctx context.Context, rt runtime.Runtime, c runtime.Container, limit int64) error {
	info, err := os.Stat(c.LogPath)
	if err != nil || info.Size() <= limit {
		return nil //nolint:nilerr // no log, nothing to rotate
	}
	for i := maxLogFiles - 2; i >= 0; i-- {
		if err := os.Rename(rotated(c.LogPath, i), rotated(c.LogPath, i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return rt.ReopenLog(ctx, c.ID)
}

// rotated is the n-th older file of a log; 0 is the log itself.
func rotated(path string, n int) string {
	if n == 0 {
		return path
	}
	return fmt.Sprintf("%s.%d", path, n)
}
