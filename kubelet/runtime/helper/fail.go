package helper

import (
	"errors"
	"strings"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// fail reports err; nothing can be done when the daemon is not there to read it.
func (c *call) fail(err error) {
	r := wire.Reply{Error: err.Error()}
	var with classed
	if errors.As(err, &with) {
		r.Class = with.class
	}
	var alive survivors
	if errors.As(err, &alive) {
		r.Survivors = alive
	}
	_ = c.answer(r)
}

// classify tells a command that cannot be executed from a container that cannot be made. The container's init reports
// only text, so text it is: an exec failure starts with the word and the quoted path.
func classify(err error) error {
	class := wire.ClassCreate
	if strings.Contains(err.Error(), `exec: "`) || strings.Contains(err.Error(), "exec /") {
		class = wire.ClassRun
	}
	return classed{class, err}
}
