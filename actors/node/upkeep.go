package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// DefaultStoreQuota is what the store's file may hold, as etcd advises for the most.
	DefaultStoreQuota = "8Gi"
	// leastQuota and mostQuota bound it: below, an empty cluster has no room; above, a start takes minutes.
	leastQuota = 16 << 20
	mostQuota  = 64 << 30
	// tendLimit bounds one call of the store's maintenance; what takes longer goes on in the background.
	tendLimit = 25 * time.Second
	// tendRetry is the wait after a call that the moment did not allow.
	tendRetry = 2 * time.Second
	// nearlyFull is the percentage of the quota from which people are told.
	nearlyFull = 90
)

// quotaBytes is StoreQuota as a number.
func (c Config) quotaBytes() (int64, error) {
	q, err := resource.ParseQuantity(c.StoreQuota)
	if err != nil || q.Value() < leastQuota || q.Value() > mostQuota {
		return 0, fmt.Errorf("storeQuota %q is not a size from 16Mi to 64Gi (for example 8Gi)", c.StoreQuota)
	}
	return q.Value(), nil
}

// Reasons for refusing writes, as everybody may read them.
var (
	errStoreFull   = errors.New("refused as far as they need room: the store or its disk is full; deletions are taken while 10 MB of the disk are free")
	errStoreStalls = errors.New("they wait: the disk of the store does not answer")
	errStoreSilent = errors.New("refused: no endpoint of the store answers")
	errStoreAway   = errors.New("refused: the store is being opened anew")
)

// storeNote is why the store does not take writes, or nil.
func (p *parts) storeNote() error {
	s, _ := p.store.get()
	if s == nil {
		return errStoreAway
	}
	switch why := s.Refusal(); {
	case why == nil:
		return nil
	case errors.Is(why, store.ErrNoSpace):
		return errStoreFull
	case errors.Is(why, store.ErrStalled):
		return errStoreStalls
	case errors.Is(why, store.ErrAway):
		return errStoreSilent
	}
	return errStoreAway
}

// lastSnapshot is when the newest snapshot was made.
func (p *parts) lastSnapshot() (time.Time, bool) {
	info, err := p.saver.last()
	return info.Time, err == nil && !info.Time.IsZero()
}

// maintenance tends the store when something is due, and tells people when they have to do something.
type maintenance struct {
	p *parts
	// refusing is why writes were refused at the last look, since when that is so; nearly whether it was told that they soon will be.
	refusing error
	since    time.Time
	nearly   bool
	// waiting is set while the disk does not let it do its work.
	waiting bool
}

func (p *parts) maintenanceChild() supervision.Handler { return &maintenance{p: p} }

// Receive implements supervision.Handler.
func (m *maintenance) Receive(ctx supervision.Context, msg any) error {
	switch d := msg.(type) {
	case supervision.Started, tick:
		m.tend(ctx)
	case supervision.JobDone:
		if d.Name == "await" && d.Err == nil {
			m.tend(ctx)
			return nil
		}
		if err := m.settle(d.Err); err != nil {
			return err
		}
		m.tell()
		if m.waiting {
			ctx.After(tendRetry, tick{})
			return nil
		}
		ctx.Go(supervision.Job{Name: "await", Endless: true, Run: m.with((*store.Store).AwaitDue)})
	}
	return nil
}

func (m *maintenance) tend(ctx supervision.Context) {
	ctx.Go(supervision.Job{Name: "tend", Deadline: tendLimit, Run: m.with((*store.Store).Tend)})
}

// with makes a job of what the store does.
func (m *maintenance) with(do func(*store.Store, context.Context) error) func(context.Context, func()) (any, error) {
	return func(ctx context.Context, _ func()) (any, error) {
		s, _ := m.p.store.get()
		if s == nil {
			return nil, store.ErrClosed
		}
		return nil, do(s, ctx)
	}
}

// settle lets pass what is of the moment.
func (m *maintenance) settle(err error) error {
	passes := err != nil && store.Passes(err)
	if passes && !m.waiting {
		m.p.log.Info("the store's maintenance waits", "why", err)
	}
	m.waiting = passes
	if passes {
		return nil
	}
	return err
}

// tell says what people have to know: in the log, and as Events of the node as far as the store takes them.
func (m *maintenance) tell() {
	s, _ := m.p.store.get()
	if s == nil {
		return
	}
	now, st := m.p.clock.Now(), s.Stats()
	percent := int64(0)
	if st.Quota > 0 {
		percent = st.DBInUse * 100 / st.Quota
	}
	switch why := s.Refusal(); {
	case why != nil && m.refusing == nil:
		m.refusing, m.since = why, now
		m.event(v1.EventTypeWarning, "StoreRefusesWrites", why.Error())
	case why == nil && m.refusing != nil:
		m.event(v1.EventTypeNormal, "StoreTakesWrites", fmt.Sprintf("writes were refused for %s: %v", now.Sub(m.since).Round(time.Second), m.refusing))
		m.refusing = nil
	}
	if percent >= nearlyFull && !m.nearly {
		m.event(v1.EventTypeWarning, "StoreNearlyFull", fmt.Sprintf("the store holds %d MB, %d%% of its quota; delete objects, or raise --store-quota", st.DBInUse>>20, percent))
	}
	m.nearly = percent >= nearlyFull
}

func (m *maintenance) event(kind, reason, text string) {
	node := &v1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: m.p.cfg.NodeName, UID: types.UID(m.p.cfg.NodeName)}
	m.p.events.For("store").Event(node, kind, reason, text)
}
