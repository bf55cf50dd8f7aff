package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/nodeactor/nodeactor/actors/node"
	"github.com/nodeactor/nodeactor/cluster/identity"
)

const (
	// readerDays is how long a reader's certificate is valid unless told otherwise, mostReaderDays how long it may be.
	readerDays, mostReaderDays = 90, 3650
	// pkiDir is the folder of the cluster's certificates in the data directory.
	pkiDir = "pki"
)

func etcdCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "etcd",
		Short:   "Use etcd's own tools on this host's store",
		GroupID: "use",
		Long: `The store answers the etcd v3 API on the address of --etcd-addr to certificates of the groups
system:masters and nodeactor:etcd-readers. Reads and watches are served, writes are refused: they
must pass admission, so use kubectl. A node started with --etcd-writes takes writes of
system:masters as well.`,
		Example: `  eval "$(nodeactor etcd env)" && etcdctl get --prefix --keys-only /registry/
  nodeactor etcd cert alice --out /home/alice/etcd     # a certificate that can only read`,
	}
	cmd.AddCommand(etcdEnvCommand(), etcdCertCommand())
	return cmd
}

func etcdEnvCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print the environment in which etcdctl reaches this host's store, as the administrator",
		Args:  cobra.NoArgs,
	}
	dir := dataDirFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return printEtcdEnv(cmd.Context(), node.Config{DataDir: *dir}.WithDefaults(), cmd.OutOrStdout())
	}
	return cmd
}

func printEtcdEnv(ctx context.Context, c node.Config, out io.Writer) error {
	line, err := node.NewLocalClient(c.Socket()).Etcd(ctx)
	if err != nil {
		return err
	}
	if line.URL == "" {
		return errors.New("cannot tell where the etcd API is: it is off; start the node with --etcd-addr host:port")
	}
	pki := filepath.Join(c.DataDir, pkiDir)
	admin := filepath.Join(pki, "admin.pem") // certificate and key
	for _, v := range [][2]string{{"ENDPOINTS", line.URL}, {"CACERT", filepath.Join(pki, "ca.crt")}, {"CERT", admin}, {"KEY", admin}} {
		fmt.Fprintf(out, "export ETCDCTL_%s='%s'\n", v[0], v[1])
	}
	return nil
}

func etcdCertCommand() *cobra.Command {
	var out string
	var days int
	cmd := &cobra.Command{
		Use:   "cert NAME --out DIR",
		Short: "Make a client certificate that can read the store through the etcd API, and nothing else",
		Args:  cobra.ExactArgs(1),
		Long: `Writes ca.crt, NAME.crt and NAME.key to the directory. Whoever has them reads the whole store, every
Secret included, until the certificate expires: it cannot be revoked earlier.`,
	}
	dir := dataDirFlag(cmd)
	cmd.Flags().StringVar(&out, "out", "", "`directory` for the three files; made if it is absent")
	cmd.Flags().IntVar(&days, "days", readerDays, "days for which the certificate is valid")
	_ = cmd.MarkFlagRequired("out")
	_ = cmd.MarkFlagDirname("out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if msgs := validation.IsDNS1123Label(args[0]); len(msgs) > 0 {
			return fmt.Errorf("cannot use the name %q: %s", args[0], msgs[0])
		}
		if days < 1 || days > mostReaderDays {
			return fmt.Errorf("cannot make a certificate for %d days: --days is between 1 and %d", days, mostReaderDays)
		}
		return makeReader(node.Config{DataDir: *dir}.WithDefaults(), args[0], out, days, cmd.OutOrStdout())
	}
	return cmd
}

func makeReader(c node.Config, name, dir string, days int, out io.Writer) error {
	pki := filepath.Join(c.DataDir, pkiDir)
	if _, err := os.Stat(filepath.Join(pki, "ca.crt")); err != nil {
		return fmt.Errorf("cannot read the cluster's authority in %s: no node was started on that directory, or you are not root", pki)
	}
	id, err := identity.Load(pki)
	if err != nil {
		return err
	}
	client, err := id.IssueEtcdReader(name, time.Duration(days)*24*time.Hour)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for file, content := range map[string][]byte{"ca.crt": client.CA, name + ".crt": client.Cert, name + ".key": client.Key} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			return fmt.Errorf("cannot write certificate: %w", err)
		}
	}
	url, note := etcdURL(node.LastConfig(c.DataDir).EtcdAddr)
	fmt.Fprintf(out, "%s can read the store until %s:\n  etcdctl --cacert %s --cert %s --key %s --endpoints %s get --prefix --keys-only /registry/\n%s",
		name, client.Expires.Format(time.DateOnly), filepath.Join(dir, "ca.crt"), filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"), url, note)
	return nil
}

// etcdURL is where a node that was given addr serves the etcd API. note says what stands in the way of whoever uses it.
func etcdURL(addr string) (url, note string) {
	if addr == "off" {
		return "https://HOST:PORT", "The node does not serve the etcd API: start it with --etcd-addr host:port.\n"
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "https://HOST:PORT", ""
	}
	switch ip := net.ParseIP(host); {
	case ip == nil || ip.IsUnspecified():
		host = "HOST"
	case ip.IsLoopback():
		note = "The node serves it to this host only; nodeactor run --etcd-addr says where.\n"
	}
	return "https://" + net.JoinHostPort(host, port), note
}

// printEtcd says in the status how the store can be reached past the Kubernetes API.
func printEtcd(ctx context.Context, client *node.LocalClient, out io.Writer) {
	limited, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	line, err := client.Etcd(limited)
	if err != nil || line.URL == "" {
		return // the health below says what is wrong with the node
	}
	fmt.Fprintf(out, "etcd           %s\n", line.URL)
	if line.Note != "" {
		fmt.Fprintf(out, "ATTENTION      %s\n", line.Note)
	}
}
