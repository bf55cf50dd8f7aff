package program

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
)

func imageCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "image", Short: "Import, pull, list and remove images of this host's node", GroupID: "use"}
	dir := cmd.PersistentFlags().String("data-dir", node.DefaultDataDir, "`directory` of the node's state")
	client := func() (*node.LocalClient, error) { return connect(*dir) }
	cmd.AddCommand(importCommand(client), pullCommand(client), listImagesCommand(client), removeImageCommand(client))
	return cmd
}

func importCommand(client func() (*node.LocalClient, error)) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE...",
		Short: "Import OCI or Docker archives (.tar, .tar.gz)",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			local, err := client()
			if err != nil {
				return err
			}
			for _, path := range args {
				abs, err := filepath.Abs(path)
				if err != nil {
					return err
				}
				f, err := os.Open(abs)
				if err != nil {
					return fmt.Errorf("cannot import image: %w", err)
				}
				refs, err := local.ImportImage(cmd.Context(), f)
				f.Close()
				if err != nil {
					return fmt.Errorf("cannot import image %s: %w", path, err)
				}
				for _, r := range refs {
					fmt.Fprintln(cmd.OutOrStdout(), "imported", r)
				}
			}
			return nil
		},
	}
}

func pullCommand(client func() (*node.LocalClient, error)) *cobra.Command {
	return &cobra.Command{
		Use:   "pull REF...",
		Short: "Pull images from their registry",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			local, err := client()
			if err != nil {
				return err
			}
			for _, ref := range args {
				if err := local.PullImage(cmd.Context(), ref); err != nil {
					return fmt.Errorf("cannot pull image %s: %w", ref, err)
				}
				fmt.Fprintln(cmd.OutOrStdout(), "pulled", ref)
			}
			return nil
		},
	}
}

func listImagesCommand(client func() (*node.LocalClient, error)) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the images that are present",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			local, err := client()
			if err != nil {
				return err
			}
			images, err := local.ListImages(cmd.Context())
			if err != nil {
				return fmt.Errorf("cannot list images: %w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%-60s %-20s %10s\n", "IMAGE", "DIGEST", "SIZE")
			for _, i := range images {
				fmt.Fprintf(cmd.OutOrStdout(), "%-60s %-20.19s %9.1fM\n", i.Ref, i.Digest, float64(i.Size)/1e6)
			}
			return nil
		},
	}
}

func removeImageCommand(client func() (*node.LocalClient, error)) *cobra.Command {
	return &cobra.Command{
		Use:     "remove REF...",
		Aliases: []string{"rm"},
		Short:   "Remove images; layers that nothing else uses go with them",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			local, err := client()
			if err != nil {
				return err
			}
			for _, ref := range args {
				if err := local.RemoveImage(cmd.Context(), ref); err != nil {
					return fmt.Errorf("cannot remove image %s: %w", ref, err)
				}
				fmt.Fprintln(cmd.OutOrStdout(), "removed", ref)
			}
			return nil
		},
	}
}
