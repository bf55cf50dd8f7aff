// Command nodeactor-runtime is the helper process of nodeactor's runtime, and the shim of each container. nodeactor
// starts it; it is of no use by hand.
package main

import (
	"os"

	"github.com/nodeactor/nodeactor/kubelet/runtime/helper"
)

func main() { os.Exit(helper.Main(os.Args)) }
