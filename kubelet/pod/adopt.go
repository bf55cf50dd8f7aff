package pod

import (
	"context"
	"fmt"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/kubelet/logs"
	"github.com/nodeactor/nodeactor/kubelet/pod/core"
	"github.com/nodeactor/nodeactor/kubelet/podspec"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
)

// Limits of a termination message, as users know them.
const (
	maxMessageBytes    = 4 << 10
	fallbackLogBytes   = 2 << 10
	fallbackLogLines   = 80
	messageFromLogTail = v1.TerminationMessageFallbackToLogsOnError
)

// adopted is what an earlier life left of the pod.
type adopted struct {
	record *runtime.PodRecord
	ips    []string
	runs   map[string][]core.Run
}

// find looks what the runtime has of the pod. The first actor of a pod trusts the record of the last relist.
func (a *Actor) find(ctx context.Context, p *v1.Pod, rec *runtime.PodRecord, trust bool) (adopted, error) {
	if !trust {
		var err error
		if rec, err = a.lookUp(ctx); err != nil || rec == nil {
			return adopted{}, err
		}
	}
	out := adopted{record: rec, runs: map[string][]core.Run{}}
	var err error
	if rec.Ready {
		if out.ips, err = a.attach(ctx, p, rec.Sandbox); err != nil {
			return out, err
		}
	}
	for _, c := range rec.Containers {
		r := toRun(c)
		if !r.Running {
			r.Message = a.message(p, c)
		}
		out.runs[c.Name] = append(out.runs[c.Name], r)
	}
	return out, nil
}

func (a *Actor) lookUp(ctx context.Context) (*runtime.PodRecord, error) {
	list, err := a.env.Runtime.List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Spec.PodUID == a.uid {
			return &list[i], nil
		}
	}
	return nil, nil
}

// attach connects the sandbox to the network, if it has one of its own, and returns the pod's addresses.
func (a *Actor) attach(ctx context.Context, p *v1.Pod, s runtime.Sandbox) ([]string, error) {
	if p.Spec.HostNetwork {
		return a.env.Host().IPs, nil
	}
	addrs, err := a.env.Network.Attach(ctx, a.uid, s.NetNS)
	if err != nil {
		return nil, fmt.Errorf("cannot connect pod to the network: %w", err)
	}
	var ips []string
	for _, ip := range addrs {
		ips = append(ips, ip.String())
	}
	return ips, nil
}

// toRun is a container of the runtime in the machine's words.
func toRun(c runtime.Container) core.Run {
	return core.Run{ID: c.ID, Attempt: c.Attempt, Running: c.State == runtime.Running, CreatedAt: c.CreatedAt, StartedAt: c.StartedAt,
		FinishedAt: c.FinishedAt, ExitCode: c.ExitCode, Signal: c.Signal, Reason: c.Reason, Message: c.Message,
		Image: c.Labels[podspec.LabelImage], ImageID: c.Labels[podspec.LabelImageID]}
}

// message is what the ended container left as its termination message; the runtime's own word if it left none.
func (a *Actor) message(p *v1.Pod, c runtime.Container) string {
	spec := podspec.Container(p, c.Name)
	if spec == nil {
		return c.Message
	}
	if text := head(podspec.MessagePath(a.env.Volumes.PodDir(a.uid), c.Name, c.Attempt), maxMessageBytes); text != "" {
		return text
	}
	if spec.TerminationMessagePolicy == messageFromLogTail && c.ExitCode != 0 {
		if text, err := logs.Tail(c.LogPath, fallbackLogLines, fallbackLogBytes); err == nil && text != "" {
			return text
		}
	}
	return c.Message
}

func head(path string, limit int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, limit)
	n, _ := f.Read(b)
	return strings.ToValidUTF8(string(b[:n]), "\uFFFD")
}
