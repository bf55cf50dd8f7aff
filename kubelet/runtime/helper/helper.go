// Package helper is what the helper process does: the only place that links libcontainer.
//
// One process carries out one request and ends, killed by its daemon when it takes too long. Everything it makes lies
// where wire.Layout says, so that another helper can remove it without knowing how far this one came.
package helper

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // the C half of a container's init
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	_ "github.com/opencontainers/cgroups/devices" // without it no device rule is accepted

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// A container's init is this binary with the argument "init"; it must be caught before anything else initialises.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "init" {
		libcontainer.Init()
	}
}

// operations maps the helper's argument to what it does. A returned error becomes the reply's.
var operations = map[string]func(*call) error{
	wire.OpSandbox:       createSandbox,
	wire.OpStart:         startContainer,
	wire.OpExec:          execProcess,
	wire.OpKill:          killCgroup,
	wire.OpRemove:        removeContainers,
	wire.OpRemoveSandbox: removeSandbox,
	wire.OpSweep:         sweep,
}

// call is one request being carried out.
type call struct {
	request *os.File
	reply   *os.File
	notes   []string
}

// Main runs the operation named by the only argument and returns the exit code.
func Main(args []string) int {
	if len(args) != 2 || operations[args[1]] == nil {
		fmt.Fprintln(os.Stderr, "nodeactor-runtime is started by nodeactor, not by hand")
		return 2
	}
	logrus.SetOutput(io.Discard) // what libcontainer returns is reported, what it logs is not
	unix.CloseOnExec(wire.FDRequest)
	unix.CloseOnExec(wire.FDReply)
	unix.CloseOnExec(wire.FDAlive)
	unix.CloseOnExec(wire.FDConsole)
	c := &call{request: os.NewFile(wire.FDRequest, "request"), reply: os.NewFile(wire.FDReply, "reply")}
	if err := operations[args[1]](c); err != nil {
		c.fail(err)
		return 1
	}
	return 0
}

func (c *call) decode(into any) error {
	defer c.request.Close()
	if err := json.NewDecoder(c.request).Decode(into); err != nil {
		return fmt.Errorf("cannot read the request: %w", err)
	}
	return nil
}

func (c *call) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// answer sends one line; the notes go with the first.
func (c *call) answer(r wire.Reply) error {
	r.Notes, c.notes = c.notes, nil
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = c.reply.Write(append(line, '\n'))
	return err
}

// classed is an error of a start with its class.
type classed struct {
	class string
	error
}

func (e classed) Unwrap() error { return e.error }

// survivors is the error of a kill that did not finish.
type survivors []int

func (s survivors) Error() string { return fmt.Sprintf("processes do not die: %v", []int(s)) }
