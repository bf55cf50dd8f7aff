package adapter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/store/index"
	"github.com/nodeactor/nodeactor/supervision"
)

// retryAfter is the number of seconds after which a client may ask a store again that does not take writes.
const retryAfter = 1

// errReopening is returned when the engine is between two lives.
var errReopening = errors.New("it is being opened anew")

// Backend is what the adapter stands on.
type Backend struct {
	Engine engine.Engine
	Index  *index.Index
	Clock  supervision.Clock
	// Lease returns a lease that lives at least ttl seconds.
	Lease func(ctx context.Context, ttl int64) (int64, error)
	// CompactRevision is the revision up to which history is forgotten.
	CompactRevision func() int64
	// Go starts a guarded goroutine whose context ends when the store closes; false when it is closed.
	Go func(name string, f func(ctx context.Context) error) bool
}

// Config describes one resource.
type Config struct {
	Prefix         string // of all keys, "/registry"
	ResourcePrefix string // of the resource's keys below it, e.g. "/pods"
	GroupResource  schema.GroupResource
	Codec          runtime.Codec
	Transformer    value.Transformer // nil = none
	NewFunc        func() runtime.Object
	NewListFunc    func() runtime.Object
	MarkCorrupt    bool // report unreadable objects so that the registry can offer their unsafe deletion
}

// Store is the storage.Interface of one resource.
type Store struct {
	backend     Backend
	cfg         Config
	pathPrefix  string
	versioner   storage.APIObjectVersioner
	transformer value.Transformer
	plain       bool // values are stored as encoded
	owner       *formOwner
	sizes       sizes
	watchers    atomic.Int32
	progress    progress
	recent      recent
}

// formOwner identifies the decoded forms of one Store on the index's items.
type formOwner struct {
	schema.GroupResource
	// transformer identifies what was decrypted on the index's items: the transformer itself where it can be compared.
	transformer any
}

var _ storage.Interface = (*Store)(nil)

// New returns the storage of a resource.
func New(b Backend, cfg Config) (*Store, error) {
	if !strings.HasPrefix(cfg.ResourcePrefix, "/") || cfg.ResourcePrefix == "/" {
		return nil, fmt.Errorf("cannot store %s: resource prefix %q is not /name", cfg.GroupResource, cfg.ResourcePrefix)
	}
	s := &Store{
		backend:    b,
		cfg:        cfg,
		pathPrefix: strings.TrimSuffix(path.Join("/", cfg.Prefix), "/") + "/",
	}
	if !strings.HasPrefix(s.pathPrefix, index.Root) {
		return nil, fmt.Errorf("cannot store %s: prefix %q is not below %s", cfg.GroupResource, cfg.Prefix, index.Root)
	}
	s.setTransformer(cfg.Transformer)
	return s, nil
}

// setTransformer also forgets all forms: they were made with the transformer before.
func (s *Store) setTransformer(t value.Transformer) {
	s.plain = t == nil || reflect.TypeOf(t) == reflect.TypeOf(identity.NewEncryptCheckTransformer())
	s.transformer = t
	s.owner = &formOwner{GroupResource: s.cfg.GroupResource, transformer: t}
	if t != nil && !reflect.TypeOf(t).Comparable() {
		s.owner.transformer = s.owner
	}
}

// Versioner implements storage.Interface.
func (s *Store) Versioner() storage.Versioner { return s.versioner }

// ReadinessCheck implements storage.Interface.
func (s *Store) ReadinessCheck() error {
	if err := s.backend.Engine.Err(); err != nil {
		return err
	}
	return s.backend.Index.Err()
}

// CompactRevision implements storage.Interface.
func (s *Store) CompactRevision() int64 { return s.backend.CompactRevision() }

// GetCurrentResourceVersion implements storage.Interface.
func (s *Store) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	if err := s.barrier(ctx); err != nil {
		return 0, err
	}
	return uint64(s.backend.Index.Revision()), nil
}

// barrier makes the index at least as new as everything acknowledged so far. A member that is alone acknowledges only what its index
// already has, so there it costs nothing, and goes on while there is no engine.
func (s *Store) barrier(ctx context.Context) error {
	if err := s.backend.Index.Err(); err != nil {
		return s.fault(err)
	}
	if s.backend.Engine.Solo() {
		return nil
	}
	rev, err := s.backend.Engine.Barrier(ctx)
	if err != nil {
		return s.fault(err)
	}
	return s.fault(s.backend.Index.Wait(ctx, rev))
}

// key is the stored key of an API key; a recursive one ends in a slash.
func (s *Store) key(key string, recursive bool) (string, error) {
	key, err := storage.PrepareKey(s.cfg.ResourcePrefix+"/", key, recursive)
	if err != nil {
		return "", err
	}
	return s.pathPrefix + strings.TrimPrefix(key, "/"), nil
}

// apiKey is the API key of a stored one.
func (s *Store) apiKey(key string) string { return "/" + strings.TrimPrefix(key, s.pathPrefix) }

// notOlderThan refuses a read whose client has already seen something newer than what would be returned.
func (s *Store) notOlderThan(asked string, have int64) error {
	if asked == "" {
		return nil
	}
	rv, err := s.versioner.ParseResourceVersion(asked)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if rv > uint64(have) {
		return storage.NewTooLargeResourceVersionError(rv, uint64(have), 0)
	}
	return nil
}

// fault turns the store's errors into what the API machinery reports to clients.
func (s *Store) fault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, engine.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError("the object is larger than the store takes")
	case errors.Is(err, engine.ErrUnknown):
		return undecided(err)
	case errors.Is(err, engine.ErrNoQuorum):
		return leaderless(err)
	case errors.Is(err, engine.ErrNoSpace), errors.Is(err, engine.ErrStalled):
		return refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, retryAfter, err)
	case errors.Is(err, engine.ErrReadOnly):
		return refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, 0, err)
	case errors.Is(err, engine.ErrAway):
		return away(err)
	case errors.Is(err, engine.ErrClosed), errors.Is(err, index.ErrClosed):
		return refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, retryAfter, errReopening)
	case errors.Is(err, supervision.ErrFenced):
		return refusal(http.StatusForbidden, metav1.StatusReasonForbidden, 0, err)
	case errors.Is(err, context.DeadlineExceeded):
		return storage.NewTimeoutError("", "store did not answer within the request's time")
	}
	return err
}

// refusal answers a write that the store does not take; after is the number of seconds until it is worth another try, 0 = unknown.
func refusal(code int32, reason metav1.StatusReason, after int32, err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf("cannot write to the store: %v", err),
		Details: &metav1.StatusDetails{RetryAfterSeconds: after},
	}}
}

// undecided answers a write of which nobody knows whether it was done. It does not ask for another try: a client that made one by itself
// would take what the first has left for somebody else's.
func undecided(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout,
		Message: fmt.Sprintf("%v; read the object before you try again", err),
	}}
}

// leaderless answers what needs more members of the store than there are.
func leaderless(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf("%v; reads that may be stale (resourceVersion=0) are served", err),
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfter},
	}}
}
