package program

import (
	"errors"

	"github.com/nodeactor/nodeactor/actors/node"
	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/served"
)

// extra is what a program adds to the node that everybody has.
type extra struct {
	operators []*served.Operator
	// wrong is why the program's node cannot run.
	wrong error
}

// extras are those of this program.
var extras extra

// Option adds something to the node that a program runs.
type Option func(*extra)

// Version says which version of the program this is; it is shown by the API, in logs and by the command version.
func Version(v string) Option { return func(*extra) { version = v } }

// Operator adds an operator: its kind is served by the node's API, with a schema made from the type of its specification, and each object of
// the kind is reconciled by it. What is wrong with it is said when the node is to run.
func Operator[S operator.Specification](op operator.Operator[S], cfg operator.OperatorConfig, options ...served.Option) Option {
	return func(e *extra) {
		bound, err := served.Bind(op, cfg, options...)
		if err != nil {
			e.wrong = errors.Join(e.wrong, err)
			return
		}
		e.operators = append(e.operators, bound)
	}
}

// into adds the operators to the node, or says what is wrong with them.
func (e *extra) into(c *node.Config) error {
	c.Operators = e.operators
	return errors.Join(e.wrong, served.Check(e.operators))
}
