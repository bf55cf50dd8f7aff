package operator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

// storm is a run in which everything goes wrong for a while: passes fail, panic, hang and come too late, processes are cut off from the
// store, stop and start, and users add, change and delete manifests meanwhile.
type storm struct {
	*bench
	running []*process
	calm    bool
	starts  int
	// want is what users asked for last, 0 for nothing.
	want map[string]int
	// made is what passes did outside the store, by the name of the manifest; the world refuses older epochs than it has seen.
	made   map[string]int
	epochs map[string]uint64
	// stale counts effects that the world refused.
	stale int
}

// stormOperator does what the storm makes of it.
type stormOperator struct{ *storm }

// Reconcile takes a while, and acts on the world with the epoch of its lease.
func (o stormOperator) Reconcile(ctx context.Context, s *state) (operator.Action, error) {
	if err := o.trouble(ctx); err != nil {
		return operator.None(), err
	}
	if o.act(s, s.Manifest.Spec.Pages) {
		return operator.None(), s.SetStatus(built{Pages: s.Manifest.Spec.Pages})
	}
	return operator.None(), operator.ErrFenced
}

// Finalize undoes it.
func (o stormOperator) Finalize(ctx context.Context, s *state) error {
	if err := o.trouble(ctx); err != nil {
		return err
	}
	if !o.act(s, 0) {
		return operator.ErrFenced
	}
	return nil
}

// act changes the world unless it comes too late.
func (o stormOperator) act(s *state, pages int) bool {
	name := s.Manifest.Name
	_, epoch := s.Fence()
	if epoch < o.epochs[name] {
		o.stale++
		return false
	}
	o.epochs[name], o.made[name] = epoch, pages
	return true
}

// trouble is what goes wrong with a pass.
func (o stormOperator) trouble(ctx context.Context) error {
	if o.calm {
		return nil
	}
	switch o.Rand().IntN(12) {
	case 0:
		return errors.New("no luck")
	case 1:
		panic("no luck")
	case 2:
		return operator.Sleep(ctx, time.Duration(o.Rand().IntN(20))*time.Second)
	case 3:
		// It does not honour its context.
		return operator.Sleep(context.WithoutCancel(ctx), time.Duration(o.Rand().IntN(60))*time.Second)
	default:
		return operator.Sleep(ctx, time.Duration(o.Rand().IntN(300))*time.Millisecond)
	}
}

// launch starts a process.
func (o *storm) launch() *process {
	o.starts++
	p := o.start(fmt.Sprint("node-", o.starts), stormOperator{o}, operator.OperatorConfig{ReconcileTimeout: 10 * time.Second})
	o.running = append(o.running, p)
	return p
}

// step is one thing that happens.
func (o *storm) step(user *operator.ControlPlane[site]) {
	name := fmt.Sprint("site-", o.Rand().IntN(6))
	switch o.Rand().IntN(10) {
	case 0:
		o.delete(user, name)
	case 1:
		if len(o.running) < 3 {
			o.launch()
		}
	case 2:
		if len(o.running) > 1 {
			o.running[0].Leave()
			o.running = o.running[1:]
		}
	case 3, 4:
		p := o.running[o.Rand().IntN(len(o.running))]
		p.line.set(!p.line.cut.Load())
	default:
		o.put(user, name)
	}
}

func (o *storm) put(user *operator.ControlPlane[site], name string) {
	pages := 1 + o.Rand().IntN(3)
	switch err := user.AddManifest(o.Context(), name, site{Pages: pages}); {
	case err == nil:
		o.want[name] = pages
	case !errors.Is(err, operator.ErrDeleting):
		o.Fatalf("%v", err)
	}
}

func (o *storm) delete(user *operator.ControlPlane[site], name string) {
	if err := user.Delete(o.Context(), name); err != nil && !errors.Is(err, operator.ErrNotFound) {
		o.Fatalf("%v", err)
	}
	o.want[name] = 0
}

// settled tells what is not as users want it, nothing when all is.
func (o *storm) settled(user *operator.ControlPlane[site]) (wrong string) {
	for name, pages := range o.want {
		v, err := user.Get(o.Context(), name)
		var b built
		switch {
		case pages == 0 && !errors.Is(err, operator.ErrNotFound):
			return fmt.Sprintf("%s is deleted and there: %+v", name, v)
		case pages == 0 && o.made[name] != 0:
			return fmt.Sprintf("%s is gone and was not finalized", name)
		case pages == 0:
		case err != nil || v.Status.Into(&b) != nil || v.Status.Phase != operator.PhaseReady || v.Status.ObservedGeneration != v.Generation:
			return fmt.Sprintf("%s is not ready: %+v, %v", name, v, err)
		case b.Pages != pages || o.made[name] != pages:
			return fmt.Sprintf("%s has %d pages stored and %d made of %d", name, b.Pages, o.made[name], pages)
		}
	}
	return ""
}

func TestStormIsFollowedByCalm(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		o := &storm{
			bench: &bench{Kit: k, store: storage.Memory(storage.WithClock(k.Clock()))},
			want:  map[string]int{}, made: map[string]int{}, epochs: map[string]uint64{},
		}
		k.Allow("operators/kinds/Site/manifests/*", supervision.Panic, supervision.Hang)
		k.AllowDeadLetters()
		k.AllowAbandoned()
		user := o.plane("user", stormOperator{o}, operator.OperatorConfig{}, o.store)
		o.launch()
		for range 60 {
			o.step(user)
			k.Advance(time.Duration(k.Rand().IntN(3000)) * time.Millisecond)
		}
		o.calm = true
		for _, p := range o.running {
			p.line.set(false)
		}
		wrong := o.settled(user)
		for range 240 {
			if wrong = o.settled(user); wrong == "" {
				break
			}
			k.Advance(time.Second)
		}
		if wrong != "" {
			k.Errorf("four minutes after the storm: %s", wrong)
		}
	}, harness.Seeds(stormSeeds))
}
