package helper

import (
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

func ociMount(m wire.Mount) specs.Mount {
	if m.Type == "tmpfs" {
		return tmpfsMount(m)
	}
	options := []string{"rbind", propagationOption(m.Propagation)}
	switch {
	case m.ReadOnly && m.RecursiveReadOnly:
		options = append(options, "rro")
	case m.ReadOnly:
		options = append(options, "ro")
	default:
		options = append(options, "rw")
	}
	return specs.Mount{Destination: m.Destination, Type: "bind", Source: m.Source, Options: options}
}

func tmpfsMount(m wire.Mount) specs.Mount {
	options := []string{"nosuid", "nodev", "mode=1777"}
	if m.Size > 0 {
		options = append(options, "size="+strconv.FormatInt(m.Size, 10))
	}
	if m.ReadOnly {
		options = append(options, "ro")
	}
	return specs.Mount{Destination: m.Destination, Type: "tmpfs", Source: "tmpfs", Options: options}
}

func propagationOption(p wire.Propagation) string {
	switch p {
	case wire.PropagationHostToContainer:
		return "rslave"
	case wire.PropagationBidirectional:
		return "rshared"
	}
	return "rprivate"
}

// rootPropagation is as loose as the loosest mount needs: the kernel passes nothing on through a stricter root.
func rootPropagation(mounts []wire.Mount) string {
	out := "rprivate"
	for _, m := range mounts {
		switch m.Propagation {
		case wire.PropagationBidirectional:
			return "rshared"
		case wire.PropagationHostToContainer:
			out = "rslave"
		}
	}
	return out
}
