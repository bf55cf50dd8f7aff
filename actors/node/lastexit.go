package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// LastExitFile says in the data directory why the last run gave up; a run that is told to
	// stop removes it.
	LastExitFile = "last-exit.json"
	// ExitGaveUp is the exit code of a process whose tree gave up: it wants to be started again.
	ExitGaveUp = 3
)

// ErrGaveUp is returned when a fault escalated past the root: nothing in the process could
// heal it, so the process ended in order, and its containers run on.
var ErrGaveUp = errors.New("the node gave up")

// LastExit tells why a run gave up.
type LastExit struct {
	At      time.Time `json:"at"`
	Started time.Time `json:"started"`
	// Reason is all of it in one line.
	Reason string `json:"reason"`
	// Fault is what went wrong first, Through who passed it upward.
	Fault   FaultLine `json:"fault"`
	Through []string  `json:"through,omitempty"`
	// Unstopped are the actors that would not stop in time.
	Unstopped  []string `json:"unstopped,omitempty"`
	Containers int      `json:"containersRunning"`
	Stack      string   `json:"stack,omitempty"`
	ExitCode   int      `json:"exitCode"`
}

// gaveUp describes the fault that escalated past the root.
func gaveUp(f supervision.Fault) LastExit {
	e := LastExit{ExitCode: ExitGaveUp}
	for {
		var inner supervision.Fault
		if !errors.As(f.Err, &inner) {
			break
		}
		e.Through = append([]string{f.Path}, e.Through...)
		f = inner
	}
	e.Fault, e.Stack = faultLine(f), string(f.Stack)
	e.Reason = oneLine(f.Error())
	if len(e.Through) > 0 {
		e.Reason += ", escalated through " + strings.Join(e.Through, ", ")
	}
	return e
}

// recordExit writes down why the node gave up, or that it did not.
func (p *parts) recordExit(begin time.Time, r Report, err error) (Report, error) {
	path := filepath.Join(p.cfg.DataDir, LastExitFile)
	var f supervision.Fault
	switch {
	case err == nil:
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			p.log.Warn("cannot remove the record of an older exit", "err", err)
		}
		return r, nil
	case !errors.As(err, &f):
		return r, err
	}
	e := gaveUp(f)
	e.At, e.Started, e.Unstopped, e.Containers = p.clock.Now(), begin, r.Unstopped, r.Containers
	if err := writeJSON(path, e); err != nil {
		p.log.Error("cannot record why the node gave up", "err", err)
	}
	return r, fmt.Errorf("%w: %s; %s", ErrGaveUp, e.Reason, r.survivors())
}

// survivors says what a person wants to know first of a node that ended by itself.
func (r Report) survivors() string {
	switch r.Containers {
	case -1:
		return "its containers were not touched"
	case 0:
		return "no container was running"
	case 1:
		return "1 container keeps running and the next start takes it over"
	}
	return fmt.Sprintf("%d containers keep running and the next start takes them over", r.Containers)
}

// ReadLastExit tells why the last run on a data directory gave up; ok is false when it did not.
func ReadLastExit(dataDir string) (e LastExit, ok bool) {
	b, err := os.ReadFile(filepath.Join(dataDir, LastExitFile))
	return e, err == nil && json.Unmarshal(b, &e) == nil
}

// writeJSON replaces a file in one step.
func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(path, append(b, '\n'))
}

// replaceFile is writeJSON for what is no JSON.
func replaceFile(path string, b []byte) error {
	if err := os.WriteFile(path+".tmp", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
