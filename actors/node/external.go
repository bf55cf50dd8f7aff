package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/nodeactor/nodeactor/actors/health"
	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// reachFirst is how long a start waits for an endpoint before it goes on as a node that waits.
	reachFirst = 3 * time.Second
	// storePath is where the local socket tells of the store.
	storePath = "/store"
)

// external tells whether the store is an etcd cluster elsewhere.
func (c Config) external() bool { return c.StoreEndpoints != "" }

func (c Config) endpoints() []string {
	var all []string
	for _, e := range strings.Split(c.StoreEndpoints, ",") {
		if e = strings.TrimSpace(e); e != "" {
			all = append(all, e)
		}
	}
	return all
}

// externalDefaults are those of a node whose store is elsewhere: what it has of its own for that is off.
func (c Config) externalDefaults() Config {
	if !c.external() {
		return c
	}
	if c.EtcdAddr == "" {
		c.EtcdAddr = "off"
	}
	if c.SnapshotEvery == "" {
		c.SnapshotEvery = "off"
	}
	return c
}

func (c Config) validStore() error {
	if !c.external() {
		for name, file := range map[string]string{"storeCAFile": c.StoreCAFile, "storeCertFile": c.StoreCertFile, "storeKeyFile": c.StoreKeyFile} {
			if file != "" {
				return fmt.Errorf("%s is given without storeEndpoints; it is for a store elsewhere", name)
			}
		}
		return nil
	}
	if err := store.CheckEndpoints(c.endpoints()); err != nil {
		return fmt.Errorf("storeEndpoints: %w", err)
	}
	switch {
	case c.EtcdAddr != "off":
		return fmt.Errorf("etcdAddr %q serves the store of this process, and storeEndpoints says it is elsewhere; leave etcdAddr out and use those endpoints", c.EtcdAddr)
	case c.EtcdWrites:
		return errors.New("etcdWrites is for the store of this process, and storeEndpoints says it is elsewhere; leave it out")
	case c.StoreQuota != DefaultStoreQuota:
		return errors.New("storeQuota is for the store of this process, and storeEndpoints says it is elsewhere; set --quota-backend-bytes there")
	case c.AcceptDataLoss:
		return errors.New("--accept-data-loss is for the store of this process, and storeEndpoints says it is elsewhere; restore it with its own tools")
	}
	return nil
}

// sameStore refuses to begin with another store than before: the node would see an empty cluster and end its pods.
func sameStore(c Config) error {
	dir := filepath.Join(c.DataDir, StoreDir)
	if _, err := os.Stat(dir); c.external() && err == nil {
		return fmt.Errorf("%w: storeEndpoints is given and %s holds this node's own store; save it with nodeactor snapshot save, restore it into the etcd cluster "+
			"with etcdutl, and move the directory away", ErrConfig, dir)
	}
	if old, ok := recorded(c.DataDir); ok && old.external() && !c.external() {
		return fmt.Errorf("%w: the objects of this node are in the etcd cluster at %s; start it with --store-endpoints %s, or give them up with nodeactor reset",
			ErrConfig, old.StoreEndpoints, old.StoreEndpoints)
	}
	return nil
}

// HasOwnStore returns why there is nothing in the data directory to restore into: the node's objects are in an etcd cluster elsewhere.
func HasOwnStore(dataDir string) error {
	if old, ok := recorded(dataDir); ok && old.external() {
		return fmt.Errorf("%w: the objects of the node of %s are in the etcd cluster at %s", ErrConfig, dataDir, old.StoreEndpoints)
	}
	return nil
}

// externalStore is where the store is when it is elsewhere, or nil.
func (p *parts) externalStore() *store.External {
	if !p.cfg.external() {
		return nil
	}
	return &store.External{Endpoints: p.cfg.endpoints(), CAFile: p.cfg.StoreCAFile, CertFile: p.cfg.StoreCertFile, KeyFile: p.cfg.StoreKeyFile, Waiting: p.absent.note}
}

// absence is why a store elsewhere is waited for; nil when it is not.
type absence struct{ why atomic.Pointer[error] }

func (a *absence) note(err error) { a.why.Store(&err) }

// reason is nil while nothing is waited for.
func (a *absence) reason() error {
	if why := a.why.Load(); why != nil && *why != nil {
		return fmt.Errorf("waiting for the store: %w", *why)
	}
	return nil
}

// awaitStore returns once a store elsewhere answers. Until then a node without a store runs, which says what it waits for. done tells that
// this was all: the node was told to stop, or cannot go on.
func (p *parts) awaitStore(ctx context.Context, begin time.Time) (report Report, done bool, err error) {
	if !p.cfg.external() {
		return Report{}, false, nil
	}
	cfg, err := p.storeConfig()
	if err != nil {
		return Report{}, true, err
	}
	first, cancel := context.WithTimeout(ctx, reachFirst)
	err = store.Reach(first, cfg)
	cancel()
	if err == nil || !errors.Is(err, store.ErrAway) || ctx.Err() != nil {
		p.absent.note(nil)
		return Report{Containers: -1}, err != nil, err
	}
	waiting, end := context.WithCancel(ctx)
	defer end()
	ask := supervision.NewGroup(waiting, "wait for the store", nil)
	reached := make(chan error, 1)
	ask.Go("ask", func(ctx context.Context) error { reached <- store.Reach(ctx, cfg); end(); return nil })
	report, err = p.live(waiting, begin, p.waitingTree)
	end()
	_ = ask.Wait()
	p.absent.note(nil)
	if err != nil || ctx.Err() != nil {
		return report, true, err
	}
	if err := <-reached; err != nil {
		return report, true, err
	}
	p.log.Info("the store answers: the node starts")
	return report, false, nil
}

// waitingTree is a node without a store.
func (p *parts) waitingTree(h *health.Health) (supervision.Spec, error) {
	p.unhealthy = h
	listeners := group("listeners", worker("listener", p.listenerChild), worker("socket", func() supervision.Handler { return p.readOnlySocket(h) }))
	return group("node", group("cluster", worker("identity", p.identityChild)), group("api", listeners), group("core", worker("health", h.Child))), nil
}

// unreached answers while a store elsewhere is waited for: never with an empty success.
func (p *parts) unreached(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/livez", "/readyz", "/healthz":
		p.unhealthy.ServeHTTP(w, r)
		return
	}
	err := apierrors.NewServiceUnavailable("waiting for the store: no endpoint answers; nodeactor status on the host says more")
	err.ErrStatus.Kind, err.ErrStatus.APIVersion = "Status", metav1.SchemeGroupVersion.Version
	w.Header().Set("Retry-After", "1")
	responsewriters.ErrorNegotiated(err, scheme.Codecs, schema.GroupVersion{Version: "v1"}, w, r)
}

// StoreLine is what the local socket tells of the store.
type StoreLine struct {
	// Engine is what holds it, in words; Endpoints where that is, "" in this process.
	Engine    string `json:"engine"`
	Endpoints string `json:"endpoints,omitempty"`
	// Note is what is wrong with it, or with its encryption.
	Note string `json:"note,omitempty"`
	// Encryption is the file that says how it is encrypted, "" when it is not.
	Encryption string `json:"encryption,omitempty"`
}

// storeLine describes the store of this node.
func (p *parts) storeLine() StoreLine {
	line := StoreLine{Engine: "etcd in this process", Encryption: p.cfg.EncryptionProviderConfig}
	if p.cfg.external() {
		line.Engine, line.Endpoints = "etcd elsewhere", p.cfg.StoreEndpoints
	}
	var notes []string
	if err := p.absent.reason(); err != nil {
		notes = append(notes, err.Error())
	} else if s, _ := p.store.get(); s != nil {
		notes = append(notes, troubles(s)...)
	}
	if p.encryption != nil && p.encryption.Refused() != nil {
		notes = append(notes, p.encryption.Refused().Error())
	}
	line.Note = strings.Join(notes, "; ")
	return line
}

// troubles are what a store that is open does without.
func troubles(s *store.Store) (notes []string) {
	if why := s.Refusal(); why != nil {
		notes = append(notes, why.Error())
	}
	if u := s.Undecryptable(); u != nil {
		notes = append(notes, u.Error())
	}
	return notes
}

// withStore adds what the local socket tells of the store.
func (p *parts) withStore(h http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.HandleFunc("GET "+storePath, func(w http.ResponseWriter, _ *http.Request) { reply(w, p.storeLine(), nil) })
	return mux
}

// Store asks what holds the node's objects.
func (c *LocalClient) Store(ctx context.Context) (line StoreLine, err error) {
	return line, c.do(ctx, http.MethodGet, storePath, nil, &line)
}
