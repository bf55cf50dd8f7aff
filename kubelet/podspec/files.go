package podspec

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Names of the files below the pod's directory, and limits of resolv.conf that every libc accepts.
const (
	hostsFile      = "etc-hosts"
	resolvFile     = "resolv.conf"
	hostnameFile   = "hostname"
	maxNameservers = 3
	maxSearches    = 32
	fileMode       = 0o644
)

// WriteFiles writes what is mounted on /etc/hosts, /etc/resolv.conf and /etc/hostname into dir, the pod's directory.
// Containers may have changed them; files whose own content is as wanted are left alone.
func WriteFiles(dir string, pod *v1.Pod, podIPs []string, host Host) error {
	hosts, err := Hosts(pod, podIPs, host)
	if err != nil {
		return err
	}
	resolv, err := Resolv(pod, host)
	if err != nil {
		return err
	}
	name := KernelHostname(pod, host.ClusterDomain)
	if pod.Spec.HostNetwork {
		name = host.Name
	}
	for file, content := range map[string]string{hostsFile: hosts, resolvFile: resolv, hostnameFile: name + "\n"} {
		path := filepath.Join(dir, file)
		if old, err := os.ReadFile(path); err == nil && string(old) == content {
			continue
		}
		if err := os.WriteFile(path, []byte(content), fileMode); err != nil {
			return fmt.Errorf("cannot write %s of pod %s/%s: %w", file, pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// Hosts is the content of /etc/hosts.
func Hosts(pod *v1.Pod, podIPs []string, host Host) (string, error) {
	var b strings.Builder
	if pod.Spec.HostNetwork {
		own, err := os.ReadFile("/etc/hosts")
		if err != nil {
			return "", fmt.Errorf("cannot read the host's hosts file: %w", err)
		}
		b.WriteString("# Kubernetes-managed hosts file (host network).\n")
		b.Write(own)
	} else {
		b.WriteString("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
			"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n")
		name, fqdn := Hostname(pod, host.ClusterDomain)
		for _, ip := range podIPs {
			fmt.Fprintf(&b, "%s\t%s\n", ip, strings.TrimPrefix(fqdn+"\t"+name, "\t"))
		}
	}
	if len(pod.Spec.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
	}
	for _, a := range pod.Spec.HostAliases {
		fmt.Fprintf(&b, "%s\t%s\n", a.IP, strings.Join(a.Hostnames, "\t"))
	}
	return b.String(), nil
}

// resolver is a parsed resolv.conf.
type resolver struct{ servers, searches, options []string }

// Resolv is the content of /etc/resolv.conf.
func Resolv(pod *v1.Pod, host Host) (string, error) {
	var r resolver
	policy := pod.Spec.DNSPolicy
	cluster := policy == v1.DNSClusterFirstWithHostNet || (policy == v1.DNSClusterFirst || policy == "") && !pod.Spec.HostNetwork
	switch {
	case policy == v1.DNSNone:
	case cluster && len(host.ClusterDNS) > 0:
		own := parseResolv(host.ResolvConf)
		r = resolver{servers: host.ClusterDNS, options: []string{"ndots:5"}}
		d := host.ClusterDomain
		r.searches = append([]string{pod.Namespace + ".svc." + d, "svc." + d, d}, own.searches...)
	default:
		r = parseResolv(host.ResolvConf)
	}
	if c := pod.Spec.DNSConfig; c != nil {
		r.merge(c)
	}
	return r.String(), nil
}

func (r *resolver) merge(c *v1.PodDNSConfig) {
	r.servers = unique(append(slices.Clone(r.servers), c.Nameservers...))
	r.searches = unique(append(slices.Clone(r.searches), c.Searches...))
	for _, o := range c.Options {
		r.options = slices.DeleteFunc(slices.Clone(r.options), func(s string) bool {
			name, _, _ := strings.Cut(s, ":")
			return name == o.Name
		})
		if o.Value != nil && *o.Value != "" {
			r.options = append(r.options, o.Name+":"+*o.Value)
		} else {
			r.options = append(r.options, o.Name)
		}
	}
}

func unique(in []string) (out []string) {
	for _, s := range in {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// String is the file; what exceeds the limits is left out.
func (r resolver) String() string {
	var b strings.Builder
	if s := unique(r.searches); len(s) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(s[:min(len(s), maxSearches)], " "))
	}
	for _, s := range r.servers[:min(len(r.servers), maxNameservers)] {
		fmt.Fprintf(&b, "nameserver %s\n", s)
	}
	if len(r.options) > 0 {
		fmt.Fprintf(&b, "options %s\n", strings.Join(r.options, " "))
	}
	return b.String()
}

func parseResolv(content string) (r resolver) {
	sc := bufio.NewScanner(strings.NewReader(content))
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "nameserver":
			r.servers = append(r.servers, f[1])
		case "search":
			r.searches = f[1:]
		case "options":
			r.options = append(r.options, f[1:]...)
		}
	}
	return r
}
