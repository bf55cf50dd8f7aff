package program

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
)

const (
	// completeTimeout bounds what a shell waits for.
	completeTimeout = time.Second
	// completeLimit is how many words are offered.
	completeLimit = 200
)

// completePaths offers the paths of the running node, one level after the other.
func completePaths(dir *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()
		q := node.ActorQuery{Depth: 1}
		if i := strings.LastIndexByte(typed, '/'); i > 0 {
			q.Path = typed[:i]
		}
		list, err := node.NewLocalClient(node.Config{DataDir: *dir}.WithDefaults().Socket()).Actors(ctx, q)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(list.Actors, typed)
	}
}

// offer lists what may follow; after a supervisor more may.
func offer(actors []node.ActorLine, typed string) (words []string, _ cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	for _, a := range actors {
		if !strings.HasPrefix(a.Path, typed) || len(words) == completeLimit {
			continue
		}
		words = append(words, cobra.CompletionWithDesc(a.Path, a.Row+", "+stateText(a)))
		if a.Kind != node.KindWorker {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
	}
	return words, directive
}

// words completes a flag from a list.
func words(cmd *cobra.Command, flag string, list ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
}

// completeHashes offers the hashes of the stacks that were kept.
func completeHashes(dir *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()
		var found []string
		// What came before the time ran out is offered.
		faults, _ := kept(ctx, node.NewLocalClient(node.Config{DataDir: *dir}.WithDefaults().Socket()), "")
		for _, f := range faults {
			if f.HasStack {
				found = append(found, cobra.CompletionWithDesc(f.Hash, f.Kind+" of "+f.Path))
			}
		}
		slices.Sort(found)
		return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
	}
}
