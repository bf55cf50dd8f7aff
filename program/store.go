package program

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/nodeactor/nodeactor/actors/node"
)

// printStore says in the status what holds the node's objects.
func printStore(ctx context.Context, client *node.LocalClient, out io.Writer) {
	limited, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	line, err := client.Store(limited)
	if err != nil {
		return // the health below says what is wrong with the node
	}
	fmt.Fprintf(out, "store          %s\n", strings.TrimSpace(line.Engine+" "+line.Endpoints))
	if line.Encryption != "" {
		fmt.Fprintf(out, "encryption     %s\n", line.Encryption)
	}
	if line.Note != "" {
		fmt.Fprintf(out, "ATTENTION      %s\n", line.Note)
	}
}
