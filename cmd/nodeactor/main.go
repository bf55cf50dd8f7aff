// Command nodeactor runs a Kubernetes node that is a whole cluster, and looks after it.
package main

import "github.com/nodeactor/nodeactor/program"

// version is set by the linker.
var version = "unknown"

func main() { program.Main(program.Version(version)) }
