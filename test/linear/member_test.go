package linear

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/rpc"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/adapter"
	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/test/wire"
)

const (
	// memberEnv makes the test binary a member: name, directory, own address and "name=address" of all, separated by spaces.
	memberEnv = "NODEACTOR_TEST_MEMBER"
	// callFor bounds a call inside a member, watchFor a watch.
	callFor  = 4 * time.Second
	watchFor = time.Second
	// root is the key of all objects, registry of what is no object.
	root     = "/configmaps/"
	registry = "/registry/raws/"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(memberEnv); spec != "" {
		if err := serveMember(strings.Fields(spec)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Member is a store with its storage, called by the test.
type Member struct {
	store *store.Store
	maps  *adapter.Store
	line  *wire.Listener
}

func serveMember(spec []string) error {
	name, dir, addr := spec[0], spec[1], spec[2]
	m := &Member{}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})).With("member", name)
	peers := &store.Peers{Listen: addr, URL: "http://" + addr, Source: ipOf(addr), Cluster: map[string]string{}, Token: dir[:strings.LastIndex(dir, "/")],
		CompareEvery: 500 * time.Millisecond, Open: func() (_ net.Listener, err error) {
			m.line, err = wire.Listen(addr)
			return m.line, err
		}}
	for _, one := range spec[3:] {
		other, at, _ := strings.Cut(one, "=")
		peers.Cluster[other] = "http://" + at
	}
	var err error
	if m.store, err = store.Open(context.Background(), store.Config{Dir: dir, NodeName: name, Log: log, Peers: peers}); err != nil {
		return err
	}
	if m.maps, err = storage4Maps(m.store); err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.Register(m); err != nil {
		return err
	}
	_ = os.Remove(socketOf(dir))
	l, err := net.Listen("unix", socketOf(dir))
	if err != nil {
		return err
	}
	go server.Accept(l)
	<-m.store.Failed()
	return m.store.Err()
}

func socketOf(dir string) string { return dir + ".sock" }

func ipOf(addr string) string { ip, _, _ := net.SplitHostPort(addr); return ip }

// storage4Maps is how the API stores ConfigMaps.
func storage4Maps(s *store.Store) (*adapter.Store, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, errors.New("no JSON")
	}
	return adapter.New(s.Backend(), adapter.Config{
		Prefix: "/registry", ResourcePrefix: "/configmaps", GroupResource: schema.GroupResource{Resource: "configmaps"},
		Codec:       scheme.Codecs.CodecForVersions(info.Serializer, info.Serializer, corev1.SchemeGroupVersion, corev1.SchemeGroupVersion),
		NewFunc:     func() runtime.Object { return &corev1.ConfigMap{} },
		NewListFunc: func() runtime.Object { return &corev1.ConfigMapList{} },
	})
}

// Request is a Call as a member gets it.
type Request struct {
	Do, Key, Value, Expect string
	Version                uint64 // of Expect
	TTL                    int64  // seconds
}

// Do does what a client asks for.
func (m *Member) Do(r Request, a *Answer) error {
	ctx, cancel := context.WithTimeout(context.Background(), callFor)
	defer cancel()
	if do := verbs[r.Do]; do != nil {
		*a = do(m, ctx, r)
		return nil
	}
	return fmt.Errorf("no verb %s", r.Do)
}

var verbs = map[string]func(*Member, context.Context, Request) Answer{
	"get": func(m *Member, ctx context.Context, r Request) Answer { return m.get(ctx, r, "") },
	// A read that does not ask the others: what a broken store would do.
	"get anything": func(m *Member, ctx context.Context, r Request) Answer { return m.get(ctx, r, "0") },
	"create":       (*Member).create,
	"update":       (*Member).update,
	"delete":       (*Member).remove,
	"acquire":      (*Member).acquire,
	"write":        (*Member).fenced,
	"raw":          (*Member).raw,
	"pass":         (*Member).pass,
}

func (m *Member) get(ctx context.Context, r Request, version string) Answer {
	var out corev1.ConfigMap
	err := m.maps.Get(ctx, root+r.Key, storage.GetOptions{ResourceVersion: version}, &out)
	return answerOf(&out, err)
}

func (m *Member) create(ctx context.Context, r Request) Answer {
	var out corev1.ConfigMap
	err := m.maps.Create(ctx, root+r.Key, mapOf(r), &out, 0)
	return answerOf(&out, err)
}

func (m *Member) update(ctx context.Context, r Request) Answer {
	var out corev1.ConfigMap
	err := m.maps.GuaranteedUpdate(ctx, root+r.Key, &out, false, nil, func(now runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
		if now.(*corev1.ConfigMap).ResourceVersion != strconv.FormatUint(r.Version, 10) {
			return nil, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, r.Key, errors.New("another version"))
		}
		return mapOf(r), nil, nil
	}, nil)
	return answerOf(&out, err)
}

func (m *Member) remove(ctx context.Context, r Request) Answer {
	var out corev1.ConfigMap
	version := strconv.FormatUint(r.Version, 10)
	err := m.maps.Delete(ctx, root+r.Key, &out, &storage.Preconditions{ResourceVersion: &version}, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
	a := answerOf(&out, err)
	a.Value = ""
	return a
}

func mapOf(r Request) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: r.Key}, Data: map[string]string{"value": r.Value}}
}

func answerOf(out *corev1.ConfigMap, err error) Answer {
	if err != nil {
		return Answer{Outcome: outcomeOf(err)}
	}
	version, _ := strconv.ParseUint(out.ResourceVersion, 10, 64)
	return Answer{Outcome: OK, Value: out.Data["value"], Version: version}
}

// outcomeOf is what an error of the storage says to a client.
func outcomeOf(err error) Outcome {
	switch {
	case storage.IsNotFound(err), apierrors.IsNotFound(err):
		return NotFound
	case storage.IsExist(err), apierrors.IsAlreadyExists(err):
		return Exists
	case storage.IsConflict(err), storage.IsInvalidObj(err), apierrors.IsConflict(err):
		return Conflict
	case apierrors.IsServiceUnavailable(err), errors.Is(err, store.ErrStalled) && !errors.Is(err, store.ErrUnknown):
		return Refused
	}
	return Unknown
}

// txn is a write as the store's leases make it.
func (m *Member) txn(ctx context.Context, w engine.Write) Answer {
	res, err := m.store.Backend().Engine.Txn(ctx, w)
	switch {
	case err != nil:
		return Answer{Outcome: outcomeOf(err)}
	case !res.Done:
		return Answer{Outcome: Conflict}
	}
	return Answer{Outcome: OK, Version: uint64(res.Revision)}
}

// acquire makes a new epoch after the one of r.Version.
func (m *Member) acquire(ctx context.Context, r Request) Answer {
	return m.txn(ctx, engine.Write{Key: registry + r.Key + "-epoch", Expect: int64(r.Version), Value: []byte(r.Value)})
}

// fenced writes as the holder of the epoch of r.Version.
func (m *Member) fenced(ctx context.Context, r Request) Answer {
	return m.txn(ctx, engine.Write{Key: registry + r.Key, Expect: engine.AnyRevision, Value: []byte(r.Value),
		Guards: []engine.Guard{{Key: registry + r.Key + "-epoch", ModRevision: int64(r.Version)}}})
}

// pass writes a key that vanishes.
func (m *Member) pass(ctx context.Context, r Request) Answer {
	lease, err := m.store.Lease(ctx, r.TTL)
	if err != nil {
		return Answer{Outcome: Refused}
	}
	return m.txn(ctx, engine.Write{Key: registry + r.Key, Value: []byte(r.Value), Lease: lease})
}

// raw is a consistent read of a key that is no object.
func (m *Member) raw(ctx context.Context, r Request) Answer {
	rev, err := m.store.Backend().Engine.Barrier(ctx)
	if err == nil {
		err = m.store.WaitApplied(ctx, rev)
	}
	if err != nil {
		return Answer{Outcome: Unknown}
	}
	item, ok := m.store.Get(registry + r.Key)
	if !ok {
		return Answer{Outcome: NotFound}
	}
	return Answer{Outcome: OK, Value: string(item.Value), Version: uint64(item.ModRevision)}
}

// Cut hangs up on the members at the addresses; without any it mends all.
func (m *Member) Cut(ips []string, _ *struct{}) error {
	if len(ips) == 0 {
		m.line.Mend()
	} else {
		m.line.Cut(ips...)
	}
	return nil
}

// Forget makes the members forget the history before some revisions ago.
func (m *Member) Forget(behind int64, _ *struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), callFor)
	defer cancel()
	return m.store.CompactTo(ctx, m.store.Revision()-behind)
}

// Stop closes the store as a node does that is told to end.
func (m *Member) Stop(_ struct{}, _ *struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), callFor)
	defer cancel()
	return m.store.Close(ctx)
}

// Leads tells whether this member leads.
func (m *Member) Leads(_ struct{}, yes *bool) error {
	*yes = m.store.Status().Leader
	return nil
}

// Event is one of a watch.
type Event struct {
	Type, Key, Value string
	Version          uint64
}

// Watched is what a short watch has seen.
type Watched struct {
	Events []Event
	Gone   bool // the version is too old
}

// Watch watches from a version on for a while; 0 begins with a list.
func (m *Member) Watch(after uint64, out *Watched) error {
	ctx, cancel := context.WithTimeout(context.Background(), watchFor)
	defer cancel()
	w, err := m.maps.Watch(ctx, root, storage.ListOptions{ResourceVersion: strconv.FormatUint(after, 10), Predicate: storage.Everything, Recursive: true})
	if err != nil {
		return err
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		if ev.Type == watch.Error {
			out.Gone = apierrors.IsResourceExpired(apierrors.FromObject(ev.Object)) || apierrors.IsGone(apierrors.FromObject(ev.Object))
			return nil
		}
		if o, ok := ev.Object.(runtime.CacheableObject); ok {
			ev.Object = o.GetObject()
		}
		cm, ok := ev.Object.(*corev1.ConfigMap)
		if !ok {
			return fmt.Errorf("an event with a %T", ev.Object)
		}
		version, _ := strconv.ParseUint(cm.ResourceVersion, 10, 64)
		out.Events = append(out.Events, Event{string(ev.Type), cm.Name, cm.Data["value"], version})
	}
	return nil
}

// Revision is the version of the newest state, consistently.
func (m *Member) Revision(_ struct{}, version *uint64) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), callFor)
	defer cancel()
	*version, err = m.maps.GetCurrentResourceVersion(ctx)
	return err
}
