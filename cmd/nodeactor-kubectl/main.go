// Command nodeactor-kubectl is the real kubectl, built beside the daemon so that both speak the same release. `nodeactor kubectl` starts it
// with the administrator's kubeconfig. It is a program of its own because linked into the daemon it would cost every node its memory.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
