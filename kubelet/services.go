package kubelet

import (
	"context"
	"reflect"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/kubelet/podspec"
	"github.com/nodeactor/nodeactor/supervision"
)

// Where the Services last seen are kept, for starts without a server.
const (
	stateBucket = "kubelet-state"
	servicesKey = "services"
)

type (
	servicesListed struct{ services []*v1.Service }
	serviceChanged struct {
		service *v1.Service
		deleted bool
	}
)

// services are the cluster's Services as containers learn of them.
type services struct {
	mu    sync.Mutex
	known bool
	byKey map[string]podspec.Service
}

func (s *services) list() ([]podspec.Service, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]podspec.Service, 0, len(s.byKey))
	for _, svc := range s.byKey {
		out = append(out, svc)
	}
	return out, s.known
}

func (s *services) replace(list []*v1.Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.byKey = true, make(map[string]podspec.Service, len(list))
	for _, svc := range list {
		s.byKey[svc.Namespace+"/"+svc.Name] = brief(svc)
	}
}

// set takes one change; it returns whether anything containers can see has changed.
func (s *services) set(svc *v1.Service, deleted bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := svc.Namespace + "/" + svc.Name
	old, had := s.byKey[key]
	if deleted {
		delete(s.byKey, key)
		return had
	}
	fresh := brief(svc)
	s.byKey[key] = fresh
	return !had || !reflect.DeepEqual(old, fresh)
}

func brief(svc *v1.Service) podspec.Service {
	b := podspec.Service{Namespace: svc.Namespace, Name: svc.Name, ClusterIP: svc.Spec.ClusterIP}
	for _, p := range svc.Spec.Ports {
		b.Ports = append(b.Ports, podspec.ServicePort{Name: p.Name, Protocol: string(p.Protocol), Port: p.Port})
	}
	return b
}

// load brings back what an earlier process saw.
func (s *services) load(l Ledger) error {
	var saved []podspec.Service
	ok, err := l.Get(stateBucket, servicesKey, &saved)
	if err != nil || !ok {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known {
		return nil
	}
	s.known, s.byKey = true, map[string]podspec.Service{}
	for _, svc := range saved {
		s.byKey[svc.Namespace+"/"+svc.Name] = svc
	}
	return nil
}

// saveServices keeps the Services for a start without a server.
func (s *syncChild) saveServices(ctx supervision.Context) {
	list, _ := s.services.list()
	ctx.Go(supervision.Job{Name: "save services", Deadline: ledgerDeadline, Run: func(context.Context, func()) (any, error) {
		return nil, s.Ledger.Put(stateBucket, servicesKey, list)
	}})
}
