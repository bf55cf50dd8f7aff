// Package hostimage compares what is on this host before and after: processes, cgroups, mounts, network namespaces,
// network links and nft tables. Tests use it to prove that nothing is left behind.
package hostimage

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/nftables"
)

// cgroupRoot is where every hierarchy is mounted.
const cgroupRoot = "/sys/fs/cgroup"

// Image is the host at one moment: one line per thing, starting with its kind (process, cgroup, mount, netns, link, nft).
// A process's line has its start time, so that a reused pid is another line, and its command and cgroups, so that it can be
// told whose it is.
type Image map[string]bool

// Take looks at the host. A process that ends meanwhile may be missing; everything else is an error.
func Take() (Image, error) {
	image := Image{}
	for _, look := range []func(Image) error{processes, cgroups, mounts, links, nftTables} {
		if err := look(image); err != nil {
			return nil, err
		}
	}
	return image, nil
}

// Since lists, sorted, what is in image and was not in before. With parts, only lines that contain one of them count:
// on a shared host the others are somebody else's.
func (image Image) Since(before Image, parts ...string) []string {
	var out []string
	for line := range image {
		ours := len(parts) == 0 || slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(line, p) })
		if !before[line] && ours {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

func (image Image) add(kind, format string, args ...any) {
	image[kind+" "+fmt.Sprintf(format, args...)] = true
}

func processes(image Image) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("cannot list processes: %w", err)
	}
	for _, e := range entries {
		dir := filepath.Join("/proc", e.Name())
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // not a process, or gone
		}
		after := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		image.add("process", "%s start=%s state=%s command=%q cgroups=%q", e.Name(), after[19], zombie(after[0]),
			strings.ReplaceAll(string(command), "\x00", " "), distinctGroups(string(groups)))
	}
	return nil
}

// zombie tells only that: whether a process runs or sleeps is not worth a line of its own.
func zombie(state string) string {
	if state == "Z" {
		return "zombie"
	}
	return "alive"
}

func distinctGroups(file string) []string {
	var out []string
	for line := range strings.Lines(file) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 && f[2] != "/" {
			out = append(out, f[2])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func cgroups(image Image) error {
	err := filepath.WalkDir(cgroupRoot, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			image.add("cgroup", "%s", path)
		}
		return nil // a group that went away meanwhile
	})
	if err != nil {
		return fmt.Errorf("cannot list cgroups: %w", err)
	}
	return nil
}

// mounts also gives the namespaces that are pinned by a mount; those only processes hold go with the processes.
func mounts(image Image) error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("cannot list mounts: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		sep := slices.Index(fields, "-")
		image.add("mount", "%s type=%s source=%s", fields[4], fields[sep+1], fields[sep+2])
		if strings.HasPrefix(fields[3], "net:[") {
			image.add("netns", "%s pinned at %s", fields[3], fields[4])
		}
	}
	return lines.Err()
}

func links(image Image) error {
	entries, err := os.ReadDir("/sys/class/net")
	if err != nil {
		return fmt.Errorf("cannot list links: %w", err)
	}
	for _, e := range entries {
		image.add("link", "%s", e.Name())
	}
	return nil
}

func nftTables(image Image) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("cannot list nft tables: %w", err)
	}
	tables, err := conn.ListTables()
	if err != nil {
		return fmt.Errorf("cannot list nft tables: %w", err)
	}
	for _, t := range tables {
		image.add("nft", "%d %s", t.Family, t.Name)
	}
	return nil
}
