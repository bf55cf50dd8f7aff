package kubelet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	nodeDeadline = 15 * time.Second
	// nodeCheckSoon is how often the node is looked at while it is not ready or not registered, nodeCheckEvery otherwise.
	nodeCheckSoon  = 500 * time.Millisecond
	nodeCheckEvery = 10 * time.Second
	// nodeCheckAway is the longest wait between looks while the API does not answer; the wait doubles up to it.
	nodeCheckAway = 2 * time.Second
	// settleFor is how long after a start what a known node says of its readiness stays as it was unless it is good: a start says nothing of the
	// pods, and who takes a node for not ready takes all its pods for that.
	settleFor = 10 * time.Second
	// maxNodeImages is how many images a Node names.
	maxNodeImages = 50
	// pressureHold is how long a pressure is told after it was last seen.
	pressureHold = 5 * time.Minute
	// The least that must be free: memory in bytes, the others in percent.
	memoryPressureBelow = 100 << 20
	diskPressureBelow   = 10
	inodePressureBelow  = 5
	pidPressureBelow    = 5
)

// nodeStatusChild registers the node and keeps what this host says about itself true. It writes only what has changed,
// so that a node at rest writes nothing.
type nodeStatusChild struct {
	*shared
	working  bool
	since    time.Time                          // when it started
	away     int                                // looks in a row that the API did not answer
	pressure map[v1.NodeConditionType]time.Time // when last seen
}

type nodeTime struct{}

// nodeDone is the end of one look at the Node.
type nodeDone struct {
	node *v1.Node
	err  error
}

// Receive handles one message.
func (n *nodeStatusChild) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		n.pressure, n.since = map[v1.NodeConditionType]time.Time{}, ctx.Clock().Now()
		n.check(ctx)
	case nodeTime:
		n.check(ctx)
	case supervision.JobDone:
		if d, ok := msg.Value.(nodeDone); ok {
			n.done(ctx, d)
		}
	}
	return nil
}

func (n *nodeStatusChild) check(ctx supervision.Context) {
	if n.working {
		return
	}
	n.working = true
	now := ctx.Clock().Now()
	conditions := n.conditions(now)
	ctx.Go(supervision.Job{Name: "node", Deadline: nodeDeadline, Run: func(c context.Context, _ func()) (any, error) {
		node, err := n.ensureNode(c, conditions, now)
		return nodeDone{node, err}, nil
	}})
}

func (n *nodeStatusChild) done(ctx supervision.Context, d nodeDone) {
	n.working = false
	wait := nodeCheckSoon
	if d.err == nil {
		n.away = 0
		n.node.Store(d.node)
		if n.ready(ctx.Clock().Now()) == nil {
			wait = nodeCheckEvery
		}
	} else {
		ctx.Log().Debug("node not written", "error", d.err)
		wait = min(nodeCheckSoon<<min(n.away, 8), nodeCheckAway)
		n.away++
	}
	ctx.After(wait, nodeTime{})
}

// ensureNode makes the Node, or brings what this host owns of it up to date.
func (n *nodeStatusChild) ensureNode(ctx context.Context, conditions []v1.NodeCondition, now time.Time) (*v1.Node, error) {
	nodes := n.Client.CoreV1().Nodes()
	have, err := nodes.Get(ctx, n.Config.NodeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		fresh := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Config.NodeName}}
		fresh.Spec.Taints = n.Config.Taints
		n.own(fresh, conditions, now)
		return nodes.Create(ctx, fresh, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, err
	}
	want := have.DeepCopy()
	n.own(want, n.settled(conditions, now), now)
	if !apiequality.Semantic.DeepEqual(have.Labels, want.Labels) || !apiequality.Semantic.DeepEqual(have.Spec, want.Spec) {
		if have, err = n.patch(ctx, have, want, ""); err != nil {
			return nil, err
		}
	}
	if apiequality.Semantic.DeepEqual(have.Status, want.Status) {
		return have, nil
	}
	return n.patch(ctx, have, want, "status")
}

// settled leaves out that the node is not ready while it has just started.
func (n *nodeStatusChild) settled(conditions []v1.NodeCondition, now time.Time) []v1.NodeCondition {
	if now.Sub(n.since) >= settleFor {
		return conditions
	}
	return slices.DeleteFunc(slices.Clone(conditions), func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status != v1.ConditionTrue
	})
}

// patch writes the difference of one part of the Node.
func (n *nodeStatusChild) patch(ctx context.Context, have, want *v1.Node, subresource string) (*v1.Node, error) {
	before, err := json.Marshal(have)
	if err != nil {
		return nil, err
	}
	next := have.DeepCopy()
	if subresource == "status" {
		next.Status = want.Status
	} else {
		next.Labels, next.Spec = want.Labels, want.Spec
	}
	after, err := json.Marshal(next)
	if err != nil {
		return nil, err
	}
	p, err := strategicpatch.CreateTwoWayMergePatch(before, after, v1.Node{})
	if err != nil {
		return nil, fmt.Errorf("cannot build the patch of a node: %w", err)
	}
	var sub []string
	if subresource != "" {
		sub = []string{subresource}
	}
	return n.Client.CoreV1().Nodes().Patch(ctx, n.Config.NodeName, types.StrategicMergePatchType, p, metav1.PatchOptions{}, sub...)
}

// own writes into node what this host owns of it and leaves the rest alone.
func (n *nodeStatusChild) own(node *v1.Node, conditions []v1.NodeCondition, now time.Time) {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	info := n.facts.info
	maps.Copy(node.Labels, map[string]string{
		v1.LabelHostname: n.Config.Hostname, v1.LabelOSStable: info.OperatingSystem, v1.LabelArchStable: info.Architecture,
		"beta.kubernetes.io/os": info.OperatingSystem, "beta.kubernetes.io/arch": info.Architecture,
	})
	maps.Copy(node.Labels, n.Config.Labels)
	if node.Spec.PodCIDR == "" && n.Config.PodCIDR != "" {
		node.Spec.PodCIDR, node.Spec.PodCIDRs = n.Config.PodCIDR, []string{n.Config.PodCIDR}
	}
	s := &node.Status
	info.KubeletVersion = n.Config.Version
	info.ContainerRuntimeVersion = "nodeactor://" + n.Config.RuntimeVersion
	s.NodeInfo = info
	s.Capacity = merged(s.Capacity, n.facts.capacity(n.Config.MaxPods))
	s.Allocatable = merged(s.Allocatable, n.facts.allocatable(n.Config.MaxPods))
	s.Addresses = n.addresses()
	s.DaemonEndpoints.KubeletEndpoint.Port = n.port()
	s.Images = nodeImages(n.Images.List())
	for _, c := range conditions {
		setCondition(s, c, now)
	}
}

// merged keeps resources others have added.
func merged(have, own v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{}
	maps.Copy(out, have)
	maps.Copy(out, own)
	return out
}

func (n *nodeStatusChild) addresses() (out []v1.NodeAddress) {
	for _, ip := range n.Config.NodeIPs {
		out = append(out, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip.String()})
	}
	return append(out, v1.NodeAddress{Type: v1.NodeHostName, Address: n.Config.Hostname})
}

func (n *nodeStatusChild) port() int32 {
	_, port, err := net.SplitHostPort(n.Config.ListenAddr)
	if err != nil {
		return 0
	}
	p, _ := strconv.ParseInt(port, 10, 32)
	return int32(p)
}

// nodeImages names the largest images, each by digest and by name.
func nodeImages(list []images.Image) (out []v1.ContainerImage) {
	byID := map[string]*v1.ContainerImage{}
	var ids []string
	for _, img := range list {
		c := byID[img.ID]
		if c == nil {
			c = &v1.ContainerImage{SizeBytes: img.Size}
			byID[img.ID] = c
			ids = append(ids, img.ID)
		}
		for _, name := range []string{img.ImageID(), img.Ref} {
			if !slices.Contains(c.Names, name) {
				c.Names = append(c.Names, name)
			}
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(byID[b].SizeBytes, byID[a].SizeBytes), cmp.Compare(a, b))
	})
	for _, id := range ids[:min(len(ids), maxNodeImages)] {
		slices.Sort(byID[id].Names)
		out = append(out, *byID[id])
	}
	return out
}

// setCondition puts c in its place; times move only when something is written anyway.
func setCondition(s *v1.NodeStatus, c v1.NodeCondition, now time.Time) {
	at := metav1.NewTime(now.Truncate(time.Second))
	for i := range s.Conditions {
		old := &s.Conditions[i]
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
			return
		}
		c.LastHeartbeatTime, c.LastTransitionTime = at, old.LastTransitionTime
		if old.Status != c.Status {
			c.LastTransitionTime = at
		}
		*old = c
		return
	}
	c.LastHeartbeatTime, c.LastTransitionTime = at, at
	s.Conditions = append(s.Conditions, c)
}

// conditions are what this host says about itself now.
func (n *nodeStatusChild) conditions(now time.Time) []v1.NodeCondition {
	free := memInfo("MemAvailable")
	out := []v1.NodeCondition{
		n.pressed(v1.NodeMemoryPressure, free > 0 && free < memoryPressureBelow, "KubeletHasInsufficientMemory", "KubeletHasSufficientMemory", "memory", now),
		n.pressed(v1.NodeDiskPressure, n.diskPressure(), "KubeletHasDiskPressure", "KubeletHasNoDiskPressure", "disk", now),
		n.pressed(v1.NodePIDPressure, pidsFreePercent() < pidPressureBelow, "KubeletHasInsufficientPID", "KubeletHasSufficientPID", "PID", now),
	}
	r := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"}
	if err := n.ready(now); err != nil {
		r.Status, r.Reason, r.Message = v1.ConditionFalse, "KubeletNotReady", steady(err)
	}
	return append(out, r)
}

func (n *nodeStatusChild) diskPressure() bool {
	return percent-diskUsedPercent(n.Config.DataDir) < diskPressureBelow || inodesFreePercent(n.Config.DataDir) < inodePressureBelow
}

// pressed is a pressure condition; it is held for a while, so that it does not flap.
func (n *nodeStatusChild) pressed(t v1.NodeConditionType, yes bool, bad, good, what string, now time.Time) v1.NodeCondition {
	if yes {
		n.pressure[t] = now
	}
	c := v1.NodeCondition{Type: t, Status: v1.ConditionFalse, Reason: good}
	switch seen, ok := n.pressure[t]; {
	case ok && now.Sub(seen) < pressureHold:
		c.Status, c.Reason = v1.ConditionTrue, bad
	}
	switch t {
	case v1.NodeDiskPressure:
		c.Message = map[bool]string{true: "kubelet has disk pressure", false: "kubelet has no disk pressure"}[c.Status == v1.ConditionTrue]
	default:
		c.Message = map[bool]string{true: "kubelet has insufficient " + what + " available", false: "kubelet has sufficient " + what + " available"}[c.Status == v1.ConditionTrue]
	}
	return c
}

// steady is the error's text without what changes at each look.
func steady(err error) string {
	text := err.Error()
	if i := indexAfter(text, "pleg was last seen active "); i > 0 {
		if j := indexAfter(text[i:], " ago;"); j > 0 {
			return text[:i] + "too long ago;" + text[i+j:]
		}
	}
	return text
}

func indexAfter(s, sub string) int {
	for i := 0; i+len(sub) <= len(s); i++ {
		if s[i:i+len(sub)] == sub {
			return i + len(sub)
		}
	}
	return -1
}
