package apiserver

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/nodeactor/nodeactor/actors/apiserver/supervisionrest"
	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/splice"
)

// Config is what a server is made from. Every field without a default must be set.
type Config struct {
	Store    *store.Store       // where objects are kept; must outlive the server
	Identity *identity.Identity // whose clients are believed, and who signs tokens
	Log      *slog.Logger       // default: slog.Default()

	AdvertiseAddr string // host:port under which pods reach this server; the endpoint of the Service `kubernetes`
	ServiceCIDR   string // where ClusterIPs come from; default 10.96.0.0/16

	Health        http.Handler            // answers /livez, /readyz, /healthz and /metrics; default: those paths are not found
	ExtraHandlers map[string]http.Handler // further paths, behind authentication and authorization

	// Observe is told of each write before and after its answer, with the request's context; it must be quick. Default: nobody is told.
	Observe func(ctx context.Context, w Write)

	Tree supervisionrest.Tree // what is served as actors and faultpolicies; default: neither is served

	// WithoutEffect names further kinds that nobody acts upon, and what whoever writes one is told in a warning, e.g. "no controller runs".
	WithoutEffect map[schema.GroupResource]string
}

// Server is an API server without a listener: Handler serves what a listener accepts, InProcess what this process asks.
type Server struct {
	config Config
	log    *slog.Logger
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	served        *serverstorage.ResourceConfig
	version       servedVersion
	loopback      *rest.Config // in process, as the server itself
	client        kubernetes.Interface
	informers     informers.SharedInformerFactory
	credentials   *credentials
	authenticator authenticator.Request
	authorizer    authorizer.Authorizer
	rules         authorizer.RuleResolver
	mapper        *restmapper.DeferredDiscoveryRESTMapper
	options       generic.RESTOptionsGetter
	allocators    *serviceAllocators

	api              *genericapiserver.GenericAPIServer
	crds             *apiextensionsapiserver.CustomResourceDefinitions
	inProcessHandler http.Handler
	assembled        chan struct{} // closed when inProcessHandler is set
	aggregating      sync.Once
	running          sync.WaitGroup
}

// New assembles a server over the store and starts what admission and authorization need to know. It returns before that knowledge is
// complete; a write that needs it waits. Call Bootstrap next, and Close in the end. New fails with the reason when a setting cannot be used;
// nothing is left running then.
func New(ctx context.Context, config Config) (*Server, error) {
	guardLibraries()
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.ServiceCIDR == "" {
		config.ServiceCIDR = defaultServiceCIDR
	}
	s := &Server{config: config, log: config.Log, served: servedVersions(), version: newServedVersion(), assembled: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := s.assemble(); err != nil {
		s.cancel()
		s.running.Wait()
		return nil, fmt.Errorf("cannot assemble the API server: %w", err)
	}
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("cannot start the API server: %w", err)
	}
	return s, nil
}

// start makes the assembled server usable.
func (s *Server) start(ctx context.Context) error {
	close(s.assembled)
	s.informers.Start(s.ctx.Done())
	s.api.RunPostStartHooks(s.ctx)
	return s.seedAllocators(ctx)
}

// assemble builds everything; it starts nothing.
func (s *Server) assemble() error {
	s.loopback = s.inProcessConfig(&user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}})
	client, err := kubernetes.NewForConfig(s.loopback)
	if err != nil {
		return err
	}
	s.client = client
	s.informers = newInformers(client)
	if s.allocators, err = newServiceAllocators(s.config.ServiceCIDR); err != nil {
		return err
	}
	if err := s.assembleTrust(); err != nil {
		return err
	}
	s.options = s.restOptions()
	return s.assembleServers()
}

// assembleTrust builds who is believed to be whom, and who may do what.
func (s *Server) assembleTrust() (err error) {
	if s.credentials, err = newCredentials(s.config.Identity); err != nil {
		return err
	}
	s.authenticator = s.credentials.authenticator(accounts{s.client})
	s.authorizer, s.rules, err = newAuthorizer(s.informers)
	return err
}

// assembleServers chains the built-in API before that of custom resources: what the first does not know, the second is asked.
func (s *Server) assembleServers() error {
	config, err := s.genericConfig()
	if err != nil {
		return err
	}
	if s.crds, err = s.newCustomResources(*config); err != nil {
		return fmt.Errorf("cannot serve custom resources: %w", err)
	}
	config.RESTOptionsGetter = s.options
	if s.api, err = config.Complete(nil).New("nodeactor", s.crds.GenericAPIServer); err != nil {
		return err
	}
	s.api.Handler.GoRestfulContainer.Router(&router{})
	if err := s.installGroups(config); err != nil {
		return err
	}
	s.installHandlers()
	if err := s.installIssuer(); err != nil {
		return err
	}
	s.installOpenAPI()
	if err := s.listCustomGroups(); err != nil {
		return err
	}
	s.inProcessHandler = s.inProcessChain(s.api.Handler.Director, config.RequestInfoResolver)
	return nil
}

// installGroups adds the built-in groups.
func (s *Server) installGroups(config *genericapiserver.Config) error {
	core, err := s.coreGroup()
	if err != nil {
		return fmt.Errorf("cannot assemble the core API group: %w", err)
	}
	named, err := s.namedGroups(s.client)
	if err != nil {
		return err
	}
	converter := newLateConverter(append([]*genericapiserver.APIGroupInfo{core}, named...))
	s.spawn("schemas", func() { _, _ = converter.build() }) // an error is the first writer's
	i := &installer{server: s.api, config: config, converter: converter, encodings: splice.NewCache(encodingsBytes)}
	if err := i.installCore(core); err != nil {
		return err
	}
	for _, group := range named {
		if err := i.installNamed(group); err != nil {
			return err
		}
	}
	return s.installTree(i)
}

func (s *Server) coreGroup() (*genericapiserver.APIGroupInfo, error) {
	kubeletTLS, err := s.config.Identity.KubeletClientTLS()
	if err != nil {
		return nil, err
	}
	return (&core{
		options:    s.options,
		authorizer: s.authorizer,
		tokens:     s.credentials.tokens,
		client:     s.client,
		allocators: s.allocators,
		kubelets:   newKubeletTransport(kubeletTLS),
		pods:       newPodTransport(),
	}).group()
}

// installHandlers mounts what is not a resource.
func (s *Server) installHandlers() {
	mux := s.api.Handler.NonGoRestfulMux
	if s.config.Health != nil {
		for _, path := range []string{"/livez", "/readyz", "/healthz"} {
			mux.Handle(path, s.config.Health)
			mux.HandlePrefix(path+"/", s.config.Health)
		}
		mux.Handle("/metrics", s.config.Health)
	}
	for path, handler := range s.config.ExtraHandlers {
		mux.Handle(path, handler)
	}
}

// Handler returns what a listener serves: the whole API, behind authentication.
func (s *Server) Handler() http.Handler { return s.api.Handler }

// Close ends every request in process, the informers and the storages, and waits for them. The listener has to be stopped before.
func (s *Server) Close() {
	s.awaitDefinitions()
	s.cancel()
	s.running.Wait()
	s.informers.Shutdown()
	s.crds.Informers.Shutdown()
	s.api.Destroy()
}

// awaitDefinitions waits a little until the stored CustomResourceDefinitions have been read: upstream takes it for fatal to be stopped before,
// and logs the stacks of the whole process.
func (s *Server) awaitDefinitions() {
	ctx, cancel := context.WithTimeout(s.ctx, definitionsTimeout)
	defer cancel()
	select {
	case <-s.crdsKnown():
	case <-ctx.Done():
	}
}

// advertised splits AdvertiseAddr.
func (s *Server) advertised() (net.IP, int, error) {
	host, port, err := net.SplitHostPort(s.config.AdvertiseAddr)
	if err != nil {
		return nil, 0, err
	}
	ip := net.ParseIP(host)
	if ip == nil || ip.IsUnspecified() {
		return nil, 0, fmt.Errorf("%q is not a concrete address", host)
	}
	number, err := net.LookupPort("tcp", port)
	return ip, number, err
}
