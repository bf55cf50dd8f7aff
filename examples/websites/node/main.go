// Command node is nodeactor with one kind more: Website. They are published into the folder that WEBSITES names, /var/lib/websites by default.
package main

import (
	"cmp"
	"os"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/examples/websites"
	"github.com/nodeactor/nodeactor/program"
)

func main() {
	publisher := websites.Publisher{Folder: cmp.Or(os.Getenv("WEBSITES"), "/var/lib/websites")}
	program.Main(program.Operator(publisher, operator.OperatorConfig{}))
}
