package crash

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// createEvery is after how many updates a writer creates another object, keepExtras how many of those it keeps.
	createEvery = 8
	keepExtras  = 4
)

// writer counts up in one object of its own, and now and then creates another one and deletes the oldest of those.
type writer struct {
	name string
	// acknowledged and asked are the highest counts that the API confirmed, and that may have been written.
	acknowledged, asked int
	revision            uint64
	version             string
	// extras were created and are there; going may be there or not; gone were deleted.
	extras, going, gone []string
}

func newWriters(n int) []*writer {
	all := make([]*writer, n)
	for i := range all {
		all[i] = &writer{name: fmt.Sprintf("writer-%02d", i)}
	}
	return all
}

// write goes on until the API is gone.
func (w *writer) write(ctx context.Context, c kubernetes.Interface) {
	for ctx.Err() == nil {
		if w.count(ctx, c) != nil {
			return
		}
		if w.acknowledged%createEvery == 0 && w.exchange(ctx, c) != nil {
			return
		}
	}
}

// count writes the next number.
func (w *writer) count(ctx context.Context, c kubernetes.Interface) (err error) {
	maps := c.CoreV1().ConfigMaps(namespace)
	w.asked = max(w.asked, w.acknowledged+1)
	m := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: w.name, ResourceVersion: w.version}, Data: map[string]string{"count": strconv.Itoa(w.acknowledged + 1)}}
	if w.version == "" {
		m, err = maps.Create(ctx, m, metav1.CreateOptions{})
	} else {
		m, err = maps.Update(ctx, m, metav1.UpdateOptions{})
	}
	if err == nil {
		w.acknowledged, w.version = w.acknowledged+1, m.ResourceVersion
		w.revision = max(w.revision, revisionOf(m.ResourceVersion))
	}
	return err
}

// exchange creates an object and deletes the oldest one.
func (w *writer) exchange(ctx context.Context, c kubernetes.Interface) error {
	maps := c.CoreV1().ConfigMaps(namespace)
	extra := fmt.Sprintf("%s-%d", w.name, w.acknowledged)
	m, err := maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: extra}}, metav1.CreateOptions{})
	if err != nil {
		w.going = append(w.going, extra)
		return err
	}
	w.extras = append(w.extras, extra)
	w.revision = max(w.revision, revisionOf(m.ResourceVersion))
	if len(w.extras) <= keepExtras {
		return nil
	}
	oldest := w.extras[0]
	w.extras = w.extras[1:]
	if err := maps.Delete(ctx, oldest, metav1.DeleteOptions{}); err != nil {
		w.going = append(w.going, oldest)
		return err
	}
	w.gone = append(w.gone[max(0, len(w.gone)-keepExtras):], oldest)
	return nil
}

func revisionOf(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}

// check compares what the store has with what the writer was told, and goes on from there.
func (w *writer) check(objects map[string]*v1.ConfigMap) (lost []string) {
	if m := objects[w.name]; m != nil {
		count, _ := strconv.Atoi(m.Data["count"])
		if count < w.acknowledged {
			lost = append(lost, fmt.Sprintf("%s counts %d, acknowledged were %d", w.name, count, w.acknowledged))
		}
		if count > w.asked {
			lost = append(lost, fmt.Sprintf("%s counts %d, only %d were asked for", w.name, count, w.asked))
		}
		w.acknowledged, w.version = count, m.ResourceVersion
	} else if w.acknowledged > 0 {
		lost = append(lost, w.name+" is gone")
	}
	for _, name := range w.extras {
		if objects[name] == nil {
			lost = append(lost, name+" is gone")
		}
	}
	for _, name := range w.gone {
		if objects[name] != nil {
			lost = append(lost, name+" was deleted and is back")
		}
	}
	for _, name := range w.going {
		if objects[name] != nil {
			w.extras = append(w.extras, name)
		}
	}
	w.going = nil
	return lost
}

// verify reads everything back. The revision must not have gone back either.
func verify(t *testing.T, c kubernetes.Interface, all []*writer) (lost []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	list, err := c.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatalf("cannot read back: %v", err)
	}
	objects := map[string]*v1.ConfigMap{}
	for i := range list.Items {
		objects[list.Items[i].Name] = &list.Items[i]
	}
	for _, w := range all {
		lost = append(lost, w.check(objects)...)
		if w.revision > revisionOf(list.ResourceVersion) {
			lost = append(lost, fmt.Sprintf("the store is at revision %s, acknowledged was %d", list.ResourceVersion, w.revision))
		}
	}
	return lost
}

// highest is the newest revision that a writer was told of.
func highest(all []*writer) (revision uint64) {
	for _, w := range all {
		revision = max(revision, w.revision)
	}
	return revision
}

// copies keeps what a look at a damaged store teaches the writers from the next case.
func copies(all []*writer) (out []*writer) {
	for _, w := range all {
		c := *w
		out = append(out, &c)
	}
	return out
}
