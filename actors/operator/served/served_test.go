package served_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/actors/operator/served"
)

// The life of an object: refused when its specification is wrong, reconciled when it is right, again at each change and not without one,
// finalized once.
func TestAKindIsServed(t *testing.T) {
	p, op := newPlane(t), newPages()
	p.serve(bound(t, op))
	p.create("one", "hello")
	p.want("one", "status.phase", "Ready")
	p.want("one", "status.value.text", "hello")
	p.want("one", "status.observedGeneration", "1")
	if got := field(p.get("one"), "spec.copies"); got != "1" {
		t.Errorf("the default is %s", got)
	}
	for spec, reason := range map[string]string{
		`{"text":3}`: "must be of type string", `{}`: "Required value", `{"text":"a","copies":10}`: "less than or equal to 9",
	} {
		_, err := p.pages().Patch(p.ctx, "one", types.MergePatchType, []byte(`{"spec":`+strings.Replace(spec, "{}", `{"text":null}`, 1)+`}`), metav1.PatchOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", spec, err)
		}
	}
	begin := time.Now()
	p.update("one", func(spec map[string]any) { spec["text"] = "bye" })
	p.want("one", "status.value.text", "bye")
	t.Logf("a change was reconciled and its status written after %s", time.Since(begin).Round(time.Millisecond))
	p.want("one", "status.observedGeneration", "2")
	time.Sleep(300 * time.Millisecond)
	if n, version := op.count("one"), p.get("one").GetResourceVersion(); true {
		p.update("one", func(spec map[string]any) { spec["text"] = "bye" })
		time.Sleep(300 * time.Millisecond)
		if again := p.get("one"); op.count("one") != n || n > 2 || again.GetResourceVersion() != version {
			t.Errorf("%d passes of two specifications, then %d of the same one; version %s became %s", n, op.count("one"), version, again.GetResourceVersion())
		}
	}
	p.must(p.pages().Delete(p.ctx, "one", metav1.DeleteOptions{}))
	p.eventually("the page is gone", func() error {
		_, err := p.pages().Get(p.ctx, "one", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %v", err)
	})
	if op.finalized["one"] != 1 {
		t.Errorf("finalized %d times", op.finalized["one"])
	}
}

// A finalizer that succeeded is not run again because the API could not be told.
func TestAFinalizerRunsOnceWhileTheAPIIsAway(t *testing.T) {
	p, op := newPlane(t), newPages()
	op.closing = func() { p.sever(&url.Error{Op: "Patch", URL: "https://in-process", Err: errAway}) }
	p.serve(bound(t, op))
	p.create("one", "hello")
	p.want("one", "status.phase", "Ready")
	p.must(p.pages().Delete(p.ctx, "one", metav1.DeleteOptions{}))
	p.want("one", "status.phase", "Deleting")
	time.Sleep(2500 * time.Millisecond) // it is tried again meanwhile
	p.sever(nil)
	p.eventually("the page is gone", func() error {
		if _, err := p.pages().Get(p.ctx, "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.finalized["one"] != 1 {
		t.Errorf("finalized %d times", op.finalized["one"])
	}
}

// Without an operator that runs, objects are Pending for their readers.
func TestAnObjectIsPendingFirst(t *testing.T) {
	p, op := newPlane(t), newPages()
	hold := make(chan struct{})
	op.do(func(ctx context.Context, _ *operator.ManifestState[page]) (operator.Action, error) {
		select {
		case <-hold:
		case <-ctx.Done():
		}
		return operator.None(), nil
	})
	p.serve(bound(t, op))
	p.create("one", "hello")
	p.want("one", "status.phase", "Pending")
	close(hold)
	p.want("one", "status.phase", "Ready")
}

// A failure is told in the status and survives the process: whoever goes on does not begin hot.
func TestAFailureIsTold(t *testing.T) {
	p, op := newPlane(t), newPages()
	op.do(func(context.Context, *operator.ManifestState[page]) (operator.Action, error) {
		return operator.None(), errors.New("no paper")
	})
	stop := p.serve(bound(t, op))
	p.create("one", "hello")
	p.want("one", "status.phase", "Retrying")
	p.want("one", "status.attempts", "2")
	p.want("one", "status.lastError", "no paper")
	stop()
	object, before := p.get("one"), op.count("one")
	next, err := time.Parse(time.RFC3339, field(object, "status.nextTry"))
	p.must(err)
	p.serve(bound(t, op))
	p.eventually("another try", func() error {
		if op.count("one") == before {
			return errors.New("none")
		}
		return nil
	})
	if now := time.Now(); now.Before(next) {
		t.Errorf("the next process tried again %s too early", next.Sub(now))
	}
	op.do(nil)
	p.update("one", func(spec map[string]any) { spec["text"] = "better" })
	p.want("one", "status.phase", "Ready")
	if got := field(p.get("one"), "status.attempts") + field(p.get("one"), "status.lastError"); got != "<nil><nil>" {
		t.Errorf("of the failure stays %s", got)
	}
}

// An operator that panics for one object parks that one, which says so; the others do not notice.
func TestAPanicParksOneObject(t *testing.T) {
	p, op := newPlane(t), newPages()
	op.do(func(_ context.Context, s *operator.ManifestState[page]) (operator.Action, error) {
		if s.Manifest.Spec.Text == "bad" {
			panic("torn")
		}
		s.SetCondition(operator.Condition{Type: "Printed", Status: operator.ConditionTrue, Reason: "Done"})
		return operator.None(), nil
	})
	p.serve(bound(t, op))
	p.create("bad", "bad")
	p.create("good", "good")
	p.want("good", "status.phase", "Ready")
	p.wantCondition("bad", kube.ConditionHealthy, "False "+kube.ReasonCrashLoop)
	p.want("bad", "status.phase", "Parked")
	if text := field(p.get("bad"), "status.lastError"); !strings.Contains(text, "torn") {
		t.Errorf("the last error is %q", text)
	}
	begin := time.Now()
	p.update("good", func(spec map[string]any) { spec["copies"] = int64(2) })
	p.want("good", "status.observedGeneration", "2")
	t.Logf("the other object was reconciled after %s", time.Since(begin).Round(time.Millisecond))
	p.update("bad", func(spec map[string]any) { spec["text"] = "mended" })
	p.want("bad", "status.phase", "Ready")
	p.wantCondition("bad", "Printed", "True Done")
	p.wantCondition("bad", kube.ConditionHealthy, "True "+kube.ReasonRecovered)
}

// TestBad_APassThatHangs is ended by its time, and that is told as a failure of its own object; that somebody else did not answer is not taken
// for an outage of the node.
func TestBad_APassThatHangs(t *testing.T) {
	p, op := newPlane(t), newPages()
	op.do(func(ctx context.Context, s *operator.ManifestState[page]) (operator.Action, error) {
		if s.Manifest.Name == "good" {
			return operator.None(), nil
		}
		<-ctx.Done()
		return operator.None(), ctx.Err()
	})
	o, err := served.Bind(operator.Operator[page](op), operator.OperatorConfig{ReconcileTimeout: 100 * time.Millisecond})
	p.must(err)
	p.serve(o)
	for i := range 4 {
		p.create(fmt.Sprintf("slow%d", i), "a")
	}
	for i := range 4 {
		p.want(fmt.Sprintf("slow%d", i), "status.attempts", "2")
	}
	if o := p.get("slow0"); field(o, "status.phase") != "Retrying" || !strings.Contains(field(o, "status.lastError"), "no more time after 100ms") {
		t.Errorf("it says %v", o.Object["status"])
	}
	begin := time.Now()
	p.create("good", "a")
	p.want("good", "status.phase", "Ready")
	t.Logf("another object was reconciled after %s", time.Since(begin).Round(time.Millisecond))
}

// TestP58_AServedOperatorThatWritesInCirclesPauses has an operator that says another of two things in each pass, and asks for the next pass.
func TestP58_AServedOperatorThatWritesInCirclesPauses(t *testing.T) {
	p, op := newPlane(t), newPages()
	turn := 0
	op.do(func(_ context.Context, s *operator.ManifestState[page]) (operator.Action, error) {
		turn++
		return operator.Requeue(50 * time.Millisecond), s.SetStatus(map[string]any{"turn": turn % 2})
	})
	p.serve(bound(t, op))
	p.create("one", "hello")
	p.wantCondition("one", kube.ConditionHotLoop, "True Oscillation")
	if n := op.count("one"); n > 12 {
		t.Errorf("it was found after %d passes, want no more than five cycles", n)
	}
	version := p.get("one").GetResourceVersion()
	time.Sleep(time.Second)
	if again := p.get("one").GetResourceVersion(); again != version {
		t.Errorf("a paused operator's object went from version %s to %s", version, again)
	}
}

// TestP58_EffectsOfAServedOperatorThatGoInCircles are found like its statuses: it writes one of two contents in turn, and is woken by that.
func TestP58_EffectsOfAServedOperatorThatGoInCircles(t *testing.T) {
	p, op := newPlane(t), newPages()
	op.do(func(ctx context.Context, s *operator.ManifestState[page]) (operator.Action, error) {
		client, err := served.Kubernetes(ctx)
		if err != nil {
			return operator.None(), err
		}
		owner, err := served.Owner(ctx, s.Manifest.Metadata)
		if err != nil {
			return operator.None(), err
		}
		maps, name := client.CoreV1().ConfigMaps("default"), s.Manifest.Name
		there, err := maps.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{owner}}}, metav1.CreateOptions{})
			return operator.None(), err
		}
		if err != nil {
			return operator.None(), err
		}
		there.Data = map[string]string{"turn": map[string]string{"": "a", "a": "b", "b": "a"}[there.Data["turn"]]}
		_, err = maps.Update(ctx, there, metav1.UpdateOptions{})
		return operator.None(), err
	})
	p.serve(bound(t, op, served.Owning("ConfigMap")))
	p.create("one", "hello")
	p.wantCondition("one", kube.ConditionHotLoop, "True Oscillation")
	if n := op.count("one"); n > 13 {
		t.Errorf("it was found after %d passes, want no more than five cycles", n)
	}
	if phase := field(p.get("one"), "status.phase"); phase != "Ready" {
		t.Errorf("the pause was taken for a failure: %v", p.get("one").Object["status"])
	}
}

// TestP58_NoOpWritesOfServedOperators: a pass that says what was said writes nothing.
func TestP58_NoOpWritesOfServedOperators(t *testing.T) {
	p, op := newPlane(t), newPages()
	op.do(func(_ context.Context, s *operator.ManifestState[page]) (operator.Action, error) {
		s.SetCondition(operator.Condition{Type: "Printed", Status: operator.ConditionTrue})
		return operator.Requeue(50 * time.Millisecond), s.SetStatus(map[string]any{"b": 1, "a": []string{"x"}})
	})
	p.serve(bound(t, op))
	p.create("one", "hello")
	p.want("one", "status.phase", "Ready")
	version, n := p.get("one").GetResourceVersion(), op.count("one")
	p.eventually("twenty passes more", func() error {
		if op.count("one") < n+20 {
			return errors.New("fewer")
		}
		return nil
	})
	if again := p.get("one"); again.GetResourceVersion() != version {
		t.Errorf("passes that changed nothing took version %s to %s", version, again.GetResourceVersion())
	}
	if got := conditionOf(p.get("one"), kube.ConditionHotLoop); got != "" {
		t.Errorf("the operator was accused: %s", got)
	}
}

// TestP59_WhileTheAPIIsAwayAServedOperatorTriesOnceASecond and all objects are reconciled soon after its return.
func TestP59_WhileTheAPIIsAwayAServedOperatorTriesOnceASecond(t *testing.T) {
	p, op := newPlane(t), newPages()
	p.serve(bound(t, op))
	const n = 30
	for i := range n {
		p.create(fmt.Sprintf("p%d", i), "a")
	}
	all := func() (sum int) {
		for i := range n {
			sum += op.count(fmt.Sprintf("p%d", i))
		}
		return sum
	}
	for i := range n {
		p.want(fmt.Sprintf("p%d", i), "status.phase", "Ready")
	}
	p.sever(&url.Error{Op: "Put", URL: "https://in-process", Err: errAway})
	for i := range n {
		p.update(fmt.Sprintf("p%d", i), func(spec map[string]any) { spec["text"] = "b" })
	}
	time.Sleep(3 * time.Second) // the outage is known
	before := all()
	time.Sleep(4 * time.Second)
	if tries := all() - before; tries > 6 {
		t.Errorf("%d tries in four seconds without an API", tries)
	}
	p.sever(nil)
	begin := time.Now()
	for i := range n {
		p.want(fmt.Sprintf("p%d", i), "status.value.text", "b")
	}
	t.Logf("%d objects were reconciled %s after the return", n, time.Since(begin).Round(time.Millisecond))
	for i := range n {
		if o := p.get(fmt.Sprintf("p%d", i)); field(o, "status.attempts") != "<nil>" {
			t.Errorf("the outage was counted as a failure of %s: %v", o.GetName(), o.Object["status"])
		}
	}
}

// What an operator makes goes through the API in its name, wakes it when somebody touches it, and is not to be had outside a pass.
func TestEffects(t *testing.T) {
	p, op := newPlane(t), newPages()
	op.do(func(ctx context.Context, s *operator.ManifestState[page]) (operator.Action, error) {
		client, err := served.Kubernetes(ctx)
		if err != nil {
			return operator.None(), err
		}
		owner, err := served.Owner(ctx, s.Manifest.Metadata)
		if err != nil {
			return operator.None(), err
		}
		_, err = client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: s.Manifest.Name, OwnerReferences: []metav1.OwnerReference{owner}}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
		return operator.None(), err
	})
	p.serve(bound(t, op, served.Owning("ConfigMap")))
	p.create("one", "hello")
	maps := p.kube.CoreV1().ConfigMaps("default")
	there := func() error { _, err := maps.Get(p.ctx, "one", metav1.GetOptions{}); return err }
	p.eventually("the config map", there)
	p.must(maps.Delete(p.ctx, "one", metav1.DeleteOptions{}))
	p.eventually("the config map again", there)
	if _, err := served.Client(p.ctx); !errors.Is(err, served.ErrNotServed) {
		t.Errorf("a client outside a pass: %v", err)
	}
}

// An operator leaves a definition alone that is not its own, says so, and begins once it is given to it.
func TestADefinitionOfSomebodyElse(t *testing.T) {
	p, op := newPlane(t), newPages()
	o := bound(t, op)
	theirs := o.Definition()
	theirs.Labels = nil
	theirs.Spec.Versions[0].AdditionalPrinterColumns = nil
	p.makeDefinition(theirs)
	p.serve(o)
	definitions, name := p.dynamic.Resource(cache.Definitions.Resource), theirs.Name
	p.eventually("the definition says that it is not the operator's", func() error {
		object, err := definitions.Get(p.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := conditionOf(object, served.ConditionServed); got != "False "+served.ReasonOtherOwner {
			return fmt.Errorf("it says %q", got)
		}
		return nil
	})
	p.eventually("the tree says so", func() error {
		if job := p.jobs("controllers/page/kinds"); !strings.Contains(job, "DefinitionTaken pages.operators.nodeactor.io") {
			return fmt.Errorf("it says %q", job)
		}
		return nil
	})
	p.eventually("the event", func() error {
		events, err := p.kube.CoreV1().Events("default").List(p.ctx, metav1.ListOptions{})
		if err != nil || !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason == served.ReasonOtherOwner && strings.Contains(e.Message, "kubectl label crd")
		}) {
			return fmt.Errorf("%d events, %v", len(events.Items), err)
		}
		return nil
	})
	p.create("one", "hello")
	time.Sleep(200 * time.Millisecond)
	if op.count("one") != 0 {
		t.Error("the operator runs on a definition that is not its own")
	}
	label := fmt.Sprintf(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":%q}}}`, served.ManagedBy)
	_, err := definitions.Patch(p.ctx, name, types.MergePatchType, []byte(label), metav1.PatchOptions{})
	p.must(err)
	p.want("one", "status.phase", "Ready")
	object, err := definitions.Get(p.ctx, name, metav1.GetOptions{})
	p.must(err)
	if got := conditionOf(object, served.ConditionServed); got != "True "+served.ReasonServed {
		t.Errorf("the definition says %q", got)
	}
}

func (p *plane) makeDefinition(crd any) {
	p.Helper()
	content, err := toUnstructured(crd)
	p.must(err)
	_, err = p.dynamic.Resource(cache.Definitions.Resource).Create(p.ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	p.must(err)
}

// A second start over the same definition writes nothing.
func TestTheDefinitionIsWrittenOnce(t *testing.T) {
	p := newPlane(t)
	stop := p.serve(bound(t, newPages()))
	p.create("one", "a")
	p.want("one", "status.phase", "Ready")
	version := func() string {
		object, err := p.dynamic.Resource(cache.Definitions.Resource).Get(p.ctx, "pages.operators.nodeactor.io", metav1.GetOptions{})
		p.must(err)
		return object.GetResourceVersion()
	}
	before := version()
	stop()
	p.serve(bound(t, newPages()))
	p.create("two", "a")
	p.want("two", "status.phase", "Ready")
	if after := version(); after != before {
		t.Errorf("the same definition took version %s to %s", before, after)
	}
}

// site reads pages: a change of one wakes the site of the same name.
type site struct {
	Name string `json:"name,omitempty"`
}

func (site) Kind() string         { return "Site" }
func (site) APIGroup() string     { return "web.example.com" }
func (site) APIVersion() string   { return "v1beta1" }
func (site) ClusterScoped() bool  { return true }
func (site) ShortNames() []string { return []string{"st"} }
func (site) Plural() string       { return "sitez" }

func TestReadsOfAnotherKind(t *testing.T) {
	p := newPlane(t)
	reads := operator.Reads(func(v operator.View[page]) []operator.Key { return []operator.Key{{Name: v.Name}} })
	sites, err := served.Bind(operator.Func[site](func(ctx context.Context, s *operator.ManifestState[site]) (operator.Action, error) {
		one, err := operator.Get[page](ctx, operator.Key{Namespace: "default", Name: s.Manifest.Name})
		if err != nil {
			return operator.None(), err
		}
		all, err := operator.List[page](ctx)
		if err != nil {
			return operator.None(), err
		}
		return operator.None(), s.SetStatus(map[string]any{"text": one.Spec.Text, "pages": len(all)})
	}), operator.OperatorConfig{Reads: []operator.Read{reads}})
	p.must(err)
	p.serve(bound(t, newPages()), sites)
	p.create("one", "first")
	at := p.dynamic.Resource(sitesResource)
	p.eventually("the site is created", func() error {
		_, err := at.Create(p.ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "web.example.com/v1beta1", "kind": "Site", "metadata": map[string]any{"name": "one"},
		}}, metav1.CreateOptions{})
		return err
	})
	says := func(text string) {
		t.Helper()
		p.eventually("the site says "+text, func() error {
			object, err := at.Get(p.ctx, "one", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if got := field(object, "status.value.text") + " " + field(object, "status.value.pages"); got != text {
				return fmt.Errorf("it says %q", got)
			}
			return nil
		})
	}
	says("first 1")
	p.update("one", func(spec map[string]any) { spec["text"] = "second" })
	says("second 1")
}
