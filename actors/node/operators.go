package node

import (
	"k8s.io/client-go/rest"

	"github.com/nodeactor/nodeactor/actors/controllers"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/actors/operator/served"
	"github.com/nodeactor/nodeactor/cluster/identity"
)

// operators are the controllers of the program's own operators. Each goes to the API as a user of its own.
func (p *parts) operators(deps controllers.Deps) ([]kube.Controller, error) {
	if len(p.cfg.Operators) == 0 {
		return nil, nil
	}
	taken := []string{"reporter"} // the sibling of all controllers
	for _, c := range controllers.All(deps) {
		taken = append(taken, c.Name)
	}
	if err := served.Check(p.cfg.Operators, taken...); err != nil {
		return nil, err
	}
	return served.Controllers(p.cfg.Operators, served.Deps{
		Clock: p.clock, Log: p.log, Events: p.events,
		Config: func(user string) *rest.Config {
			config := p.clientConfig(user, identity.MastersGroup)
			config.Transport = p.breaker.Guard(config.Transport)
			return config
		},
	})
}
