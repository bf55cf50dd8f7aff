package program

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/nodeactor/nodeactor/actors/apiserver"
	"github.com/nodeactor/nodeactor/actors/node"
)

func kubeVersion() string { return apiserver.BuildVersion().GitVersion }

// flagSet is the flags of `run`; a flag that was given beats the file, the file beats
// the default.
type flagSet struct {
	file  string
	given node.Config
	flags *pflag.FlagSet
}

func (f *flagSet) bind(fs *pflag.FlagSet) {
	f.flags = fs
	fs.StringVar(&f.file, "config", "", "YAML `file` with the same settings, e.g. dataDir, apiAddr; unknown fields are refused")
	fs.StringVar(&f.given.DataDir, "data-dir", "", "`directory` of all state (default "+node.DefaultDataDir+")")
	fs.StringVar(&f.given.NodeName, "node-name", "", "`name` of this node (default: the host name)")
	fs.StringVar(&f.given.APIAddr, "api-addr", "", "`host:port` of the Kubernetes API (default "+node.DefaultAPIAddr+")")
	fs.StringVar(&f.given.KubeletAddr, "kubelet-addr", "", "`host:port` of the kubelet (default "+node.DefaultKubeletAddr+")")
	fs.StringVar(&f.given.EtcdAddr, "etcd-addr", "", "`host:port` of the etcd API, or off (default "+node.DefaultEtcdAddr+")")
	fs.BoolVar(&f.given.EtcdWrites, "etcd-writes", false, "let system:masters write through the etcd API, past admission")
	fs.StringVar(&f.given.CgroupRoot, "cgroup-root", "", "`path` of the cgroup above all pods (default "+node.DefaultCgroupRoot+", with a hash for another data directory)")
	fs.StringVar(&f.given.PodCIDR, "pod-cidr", "", "IPv4 `network` of this node's pods (default: a free one, 10.244.0.0/24 first)")
	fs.StringVar(&f.given.ServiceCIDR, "service-cidr", "", "IPv4 `network` of Services (default "+node.DefaultServiceCIDR+")")
	fs.StringVar(&f.given.AdvertiseAddress, "advertise-address", "", "`address` others reach this host at (default: of the default route)")
	fs.IntVar(&f.given.MaxPods, "max-pods", 0, fmt.Sprintf("most pods on this node (default %d)", node.DefaultMaxPods))
	fs.StringVar(&f.given.StoreEndpoints, "store-endpoints", "", "https `URLs` of the members of an etcd cluster that holds the objects instead of this node, separated by commas")
	fs.StringVar(&f.given.StoreCAFile, "store-ca-file", "", "`file` of the CA that has signed their certificates (default: those the host trusts)")
	fs.StringVar(&f.given.StoreCertFile, "store-cert-file", "", "`file` of the certificate with which the node goes there; read again when it changes")
	fs.StringVar(&f.given.StoreKeyFile, "store-key-file", "", "`file` of its key")
	fs.StringVar(&f.given.StoreQuota, "store-quota", "", "`size` that the store's file may hold, e.g. 8Gi; over it deletions go on, and updates that do not grow (default "+node.DefaultStoreQuota+")")
	fs.StringVar(&f.given.SnapshotEvery, "snapshot-every", "", "`time` between two automatic snapshots of the store, or off (default "+node.DefaultSnapshotEvery+")")
	fs.IntVar(&f.given.SnapshotKeep, "snapshot-keep", 0, fmt.Sprintf("`number` of the newest automatic snapshots to keep, beside one a day for a week (default %d)", node.DefaultSnapshotKeep))
	fs.StringVar(&f.given.ReplicaGroups, "replica-groups", "", "`mode`: manage ReplicaGroups, manage them without-bursts, or observe: only look (default "+node.ManageReplicaGroups+")")
	fs.StringVar(&f.given.LogLevel, "log-level", "", "debug, info, warn or error (default info)")
	fs.StringVar(&f.given.EncryptionProviderConfig, "encryption-provider-config", "", "`file` of an EncryptionConfiguration: how Secrets and others are encrypted in the store")
	fs.BoolVar(&f.given.AcceptDataLoss, "accept-data-loss", false, "if the store is damaged, go on from its newest good snapshot and lose what was written since; for one start, not for a unit file")
	fs.BoolVar(&f.given.FaultInjection, "fault-injection", false, "let administrators inject faults through /debug/faults")
	fs.StringVar(&f.given.PprofAddr, "pprof-addr", "", "loopback `host:port` for Go profiles")
	_ = fs.MarkHidden("fault-injection")
	_ = fs.MarkHidden("pprof-addr")
}

// load merges file and flags into a valid Config.
func (f *flagSet) load() (node.Config, error) {
	c := node.Config{}
	if f.file != "" {
		b, err := os.ReadFile(f.file)
		if err != nil {
			return c, fmt.Errorf("cannot read configuration: %w", err)
		}
		if err := yaml.UnmarshalStrict(b, &c); err != nil {
			return c, fmt.Errorf("cannot use configuration %s: %s; see nodeactor run --help for the settings", f.file, plainYAML(err))
		}
		if err := zeroInFile(f.file, b); err != nil {
			return c, err
		}
		for i := range c.FaultPolicies {
			c.FaultPolicies[i].Source = fmt.Sprintf("%s: faultPolicies[%d]", f.file, i)
		}
	}
	if err := f.zeroFlag(); err != nil {
		return c, err
	}
	overlay(&c, f.given)
	c.Version = version
	if err := extras.into(&c); err != nil {
		return c, err
	}
	c = c.WithDefaults()
	return c, c.Validate()
}

// counts are the settings that are numbers, by flag and by their name in a file, and what to do instead of setting them to zero: the node could
// not tell that from a setting that was left out.
var counts = []struct{ flag, field, instead string }{
	{"max-pods", "maxPods", "leave it out for the default"},
	{"snapshot-keep", "snapshotKeep", "leave it out for the default; to save none, set snapshotEvery (--snapshot-every) to off"},
}

// zeroFlag refuses a number that was given as zero.
func (f *flagSet) zeroFlag() error {
	for _, n := range counts {
		if f.flags != nil && f.flags.Changed(n.flag) && f.flags.Lookup(n.flag).Value.String() == "0" {
			return fmt.Errorf("%w: --%s 0 is not a number from 1 on; %s", node.ErrConfig, n.flag, n.instead)
		}
	}
	return nil
}

// zeroInFile refuses a number that stands in a file as zero.
func zeroInFile(file string, content []byte) error {
	var fields map[string]any
	if err := yaml.Unmarshal(content, &fields); err != nil {
		return nil // it was read as settings before
	}
	for _, n := range counts {
		if v, ok := fields[n.field].(float64); ok && v == 0 {
			return fmt.Errorf("%w: %s: %s 0 is not a number from 1 on; %s", node.ErrConfig, file, n.field, n.instead)
		}
	}
	return nil
}

// plainYAML is an error of the YAML library in one line, without its way through the library and without Go's types.
func plainYAML(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return wrongType(wrong)
	}
	text := oneLine(err.Error())
	for _, way := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "yaml: ", "unmarshal errors: ", "json: "} {
		text = strings.TrimPrefix(text, way)
	}
	return text
}

// wrongType says which setting has a value of the wrong kind.
func wrongType(wrong *json.UnmarshalTypeError) string {
	place := strings.NewReplacer(".plain.", ".", ".true.", ".on.").Replace(wrong.Field + ".")
	place = cmp.Or(strings.TrimSuffix(place, "."), "the file")
	want := "a mapping"
	switch wrong.Type.Kind() {
	case reflect.String:
		want = "a text"
	case reflect.Int:
		want = "a whole number"
	case reflect.Float64:
		want = "a number"
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice:
		want = "a list"
	}
	have := map[string]string{"string": "a text", "object": "a mapping", "array": "a list", "bool": "true or false"}[wrong.Value]
	return fmt.Sprintf("%s has to be %s, not %s", place, want, cmp.Or(have, strings.TrimPrefix(wrong.Value, "number ")))
}

// overlay copies every field that was given over c.
func overlay(c *node.Config, given node.Config) {
	for _, s := range []struct{ to, from *string }{
		{&c.DataDir, &given.DataDir}, {&c.NodeName, &given.NodeName}, {&c.APIAddr, &given.APIAddr},
		{&c.KubeletAddr, &given.KubeletAddr}, {&c.EtcdAddr, &given.EtcdAddr}, {&c.CgroupRoot, &given.CgroupRoot},
		{&c.PodCIDR, &given.PodCIDR}, {&c.ServiceCIDR, &given.ServiceCIDR}, {&c.AdvertiseAddress, &given.AdvertiseAddress},
		{&c.LogLevel, &given.LogLevel}, {&c.StoreQuota, &given.StoreQuota}, {&c.PprofAddr, &given.PprofAddr}, {&c.EncryptionProviderConfig, &given.EncryptionProviderConfig},
		{&c.SnapshotEvery, &given.SnapshotEvery}, {&c.ReplicaGroups, &given.ReplicaGroups},
		{&c.StoreEndpoints, &given.StoreEndpoints}, {&c.StoreCAFile, &given.StoreCAFile}, {&c.StoreCertFile, &given.StoreCertFile}, {&c.StoreKeyFile, &given.StoreKeyFile},
	} {
		if *s.from != "" {
			*s.to = *s.from
		}
	}
	if given.MaxPods != 0 {
		c.MaxPods = given.MaxPods
	}
	if given.SnapshotKeep != 0 {
		c.SnapshotKeep = given.SnapshotKeep
	}
	c.AcceptDataLoss = given.AcceptDataLoss
	c.FaultInjection = c.FaultInjection || given.FaultInjection
	c.EtcdWrites = c.EtcdWrites || given.EtcdWrites
}

// dataDirVar adds --data-dir to a command that completes its arguments from the node's socket.
func dataDirVar(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "data-dir", node.DefaultDataDir, "`directory` of the node's state")
	_ = cmd.MarkFlagDirname("data-dir")
}

// dataDirFlag adds --data-dir to a command that looks at an existing node.
func dataDirFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("data-dir", node.DefaultDataDir, "`directory` of the node's state")
}
