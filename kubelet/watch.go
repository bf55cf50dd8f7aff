package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/nodeactor/nodeactor/supervision"
)

const (
	listDeadline = 30 * time.Second
	// watchFirst and watchMax space the attempts to reach the API.
	watchFirst = 200 * time.Millisecond
	watchMax   = 10 * time.Second
	// watchMin is how long a watch must last for the next to be opened at once.
	watchMin = time.Second
	// watchSeconds is how long one watch lasts before it is opened anew from where it ended.
	watchSeconds = 600
)

// source is one kind of object to follow.
type source struct {
	name    string
	list    func(ctx context.Context, o metav1.ListOptions) (resourceVersion string, err error)
	watch   func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	changed func(e watch.Event)
	options metav1.ListOptions
}

// follow lists, then watches, for ever; a lost watch goes on where it ended, and lists anew where it cannot.
func (s source) follow(ctx context.Context, clock supervision.Clock, log *slog.Logger) error {
	wait, at, told := watchFirst, "", false
	for ctx.Err() == nil {
		began := clock.Now()
		next, err := s.once(ctx, at)
		at = next
		lasted := clock.Now().Sub(began)
		if lasted > watchMax {
			wait = watchFirst
		}
		if err == nil {
			told = false
			if lasted > watchMin {
				continue
			}
		}
		if err != nil && !told && ctx.Err() == nil {
			told = true
			log.Info("cannot follow the API, going on with what is known", "what", s.name, "error", err)
		}
		if clock.Sleep(ctx, wait) != nil {
			break
		}
		wait = min(2*wait, watchMax)
	}
	return ctx.Err()
}

// once lists if at is empty, watches until the watch ends, and returns from where to go on.
func (s source) once(ctx context.Context, at string) (string, error) {
	if at == "" {
		c, cancel := context.WithTimeout(ctx, listDeadline)
		var err error
		at, err = s.list(c, s.options)
		cancel()
		if err != nil {
			return "", fmt.Errorf("cannot list %s: %w", s.name, err)
		}
	}
	o := s.options
	seconds := int64(watchSeconds)
	o.ResourceVersion, o.AllowWatchBookmarks, o.TimeoutSeconds = at, true, &seconds
	w, err := s.watch(ctx, o)
	if err != nil {
		return "", fmt.Errorf("cannot watch %s: %w", s.name, err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return at, nil
		case e, ok := <-w.ResultChan():
			if !ok {
				return at, nil
			}
			if e.Type == watch.Error {
				return "", watchError(s.name, apierrors.FromObject(e.Object))
			}
			if m, err := metaOf(e); err == nil {
				at = m.GetResourceVersion()
			}
			if e.Type != watch.Bookmark {
				s.changed(e)
			}
		}
	}
}

// watchError turns the end of an old watch into a plain new list.
func watchError(name string, err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	return fmt.Errorf("watch of %s ended: %w", name, err)
}

func metaOf(e watch.Event) (metav1.Object, error) {
	m, ok := e.Object.(metav1.Object)
	if !ok {
		return nil, errors.New("no object")
	}
	return m, nil
}

// watchPods follows the pods bound to this node.
func (s *syncChild) watchPods(ctx supervision.Context) {
	self, sys, node := ctx.Self(), ctx.System(), s.Config.NodeName
	mine := func(p *v1.Pod) bool { return p.Spec.NodeName == node }
	src := source{name: "pods", options: metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()}}
	api := s.Client.CoreV1().Pods(metav1.NamespaceAll)
	src.list = func(c context.Context, o metav1.ListOptions) (string, error) {
		list, err := api.List(c, o)
		if err != nil {
			return "", err
		}
		msg := podsListed{}
		for i := range list.Items {
			if mine(&list.Items[i]) {
				msg.pods = append(msg.pods, &list.Items[i])
			}
		}
		sys.Send(self, msg)
		return list.ResourceVersion, nil
	}
	src.watch = api.Watch
	src.changed = func(e watch.Event) {
		p, ok := e.Object.(*v1.Pod)
		switch {
		case !ok || !mine(p):
		case e.Type == watch.Deleted:
			sys.Send(self, podDeleted{p})
		default:
			sys.Send(self, podChanged{p})
		}
	}
	s.run(ctx, src)
}

// watchServices follows the Services, for the environment of containers.
func (s *syncChild) watchServices(ctx supervision.Context) {
	self, sys := ctx.Self(), ctx.System()
	src := source{name: "services"}
	api := s.Client.CoreV1().Services(metav1.NamespaceAll)
	src.list = func(c context.Context, o metav1.ListOptions) (string, error) {
		list, err := api.List(c, o)
		if err != nil {
			return "", err
		}
		msg := servicesListed{}
		for i := range list.Items {
			msg.services = append(msg.services, &list.Items[i])
		}
		sys.Send(self, msg)
		return list.ResourceVersion, nil
	}
	src.watch = api.Watch
	src.changed = func(e watch.Event) {
		if svc, ok := e.Object.(*v1.Service); ok {
			sys.Send(self, serviceChanged{svc, e.Type == watch.Deleted})
		}
	}
	s.run(ctx, src)
}

func (s *syncChild) run(ctx supervision.Context, src source) {
	clock, log := ctx.Clock(), ctx.Log()
	ctx.Go(supervision.Job{Name: "watch " + src.name, Endless: true, Run: func(c context.Context, _ func()) (any, error) {
		return nil, src.follow(c, clock, log)
	}})
}
