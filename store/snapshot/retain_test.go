package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// begin is when the first of the made-up snapshots was saved.
var begin = time.Date(2026, 3, 1, 0, 30, 0, 0, time.UTC)

// history are n snapshots of one reason, the newest first.
func history(n int, reason string, every time.Duration) (all []Info) {
	for i := range n {
		info := Info{Time: begin.Add(time.Duration(i) * every), Revision: int64(1000 + i), Reason: reason}
		info.Path = nameOf(info)
		all = append(all, info)
	}
	slices.Reverse(all)
	return all
}

func TestRetention(t *testing.T) {
	for _, c := range []struct {
		name       string
		n          int
		reason     string
		every      time.Duration
		keep, want int
	}{
		{"a fortnight of hours", 14 * 24, Periodic, time.Hour, 24, 24 + 6},
		{"fewer than are kept", 10, Periodic, time.Hour, 24, 10},
		{"one each month, for years", 60, Periodic, 30 * 24 * time.Hour, 3, 7},
		{"none by number", 48, Periodic, time.Hour, 0, 2},
		{"upgrades", 30, Upgrade, time.Hour, 24, keepUpgrades},
		{"changes of the members", 30, Membership, time.Hour, 24, keepMemberships},
		{"by hand", 5000, Manual, time.Minute, 24, 5000},
		{"for a reason of others", 50, "drill", time.Minute, 24, 50},
	} {
		all := history(c.n, c.reason, c.every)
		gone := over(all, c.keep)
		if got := c.n - len(gone); got != c.want {
			t.Errorf("%s: %d are kept, want %d", c.name, got, c.want)
		}
		if slices.ContainsFunc(gone, func(i Info) bool { return i == all[0] }) {
			t.Errorf("%s: the newest is removed", c.name)
		}
	}
}

// TestRetentionByDay holds that of a day the newest stays.
func TestRetentionByDay(t *testing.T) {
	all := history(72, Periodic, time.Hour)
	gone := over(all, 1)
	var left []string
	for _, info := range all {
		if !slices.Contains(gone, info) {
			left = append(left, info.Time.Format("02 15:04"))
		}
	}
	if want := []string{"03 23:30", "02 23:30", "01 23:30"}; !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}

// fake makes files with the names of snapshots and nothing good in them.
func fake(t *testing.T, dir string, all []Info) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, info := range all {
		if err := os.WriteFile(filepath.Join(dir, nameOf(info)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPruneKeepsTheGoodOne holds that a snapshot that is known to be good stays, also when newer ones came that nobody has verified.
func TestPruneKeepsTheGoodOne(t *testing.T) {
	info, _ := saved(t)
	dir := filepath.Dir(info.Path)
	old := Info{Time: begin.Add(-time.Hour * 24 * 365), Revision: info.Revision, Reason: Periodic}
	old.Path = filepath.Join(dir, nameOf(old))
	if err := os.Rename(info.Path, old.Path); err != nil {
		t.Fatal(err)
	}
	fake(t, dir, history(400, Periodic, time.Hour))
	removed, err := Prune(dir, 5, old)
	if err != nil || len(removed) < 300 {
		t.Fatalf("removed %d: %v", len(removed), err)
	}
	if good, err := Newest(t.Context(), dir); err != nil || good.Path != old.Path {
		t.Errorf("the good one is %+v, %v", good, err)
	}
}

// TestP27_TenThousandSnapshots holds that a list of them is nothing out of the ordinary: only names are held, and the first come at once.
func TestP27_TenThousandSnapshots(t *testing.T) {
	dir := t.TempDir()
	const n = 10_000
	fake(t, dir, history(n, Manual, time.Minute))
	fake(t, dir, nil)
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	started, count, last := time.Now(), 0, time.Time{}
	for info, err := range List(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if count++; count > 1 && !info.Time.Before(last) {
			t.Fatalf("%s comes after %s", info.Time, last)
		}
		if info.Size != 1 || info.Reason != Manual {
			t.Fatalf("listed %+v", info)
		}
		last = info.Time
	}
	if count != n {
		t.Errorf("%d are listed", count)
	}
	t.Logf("%d listed in %s", count, time.Since(started).Round(time.Millisecond))
	if latest, ok, err := Latest(dir); err != nil || !ok || latest.Revision != 1000+n-1 {
		t.Errorf("the latest is %+v, %v, %v", latest, ok, err)
	}
	if removed, err := Prune(dir, 1, Info{}); err != nil || len(removed) != 0 {
		t.Errorf("%d saved by hand were removed: %v", len(removed), err)
	}
}

// TestNewestPassesOverDamage holds that what is damaged is passed over, and named when there is nothing else.
func TestNewestPassesOverDamage(t *testing.T) {
	info, _ := saved(t)
	dir := filepath.Dir(info.Path)
	fake(t, dir, []Info{{Time: info.Time.Add(time.Hour), Revision: info.Revision + 1, Reason: Periodic}})
	if got, err := Newest(t.Context(), dir); err != nil || got != info {
		t.Fatalf("the newest good one is %+v, %v", got, err)
	}
	damage(t, info.Path)
	_, err := Newest(t.Context(), dir)
	if !errors.Is(err, ErrNone) || !errors.Is(err, ErrDamaged) {
		t.Errorf("nothing is good: %v", err)
	}
	if _, err := Newest(t.Context(), filepath.Join(dir, "absent")); !errors.Is(err, ErrNone) {
		t.Errorf("no directory: %v", err)
	}
}

func TestNames(t *testing.T) {
	info := Info{Time: begin, Revision: 42, Reason: "before-drill"}
	info.Path = nameOf(info)
	if got, ok := parseName(info.Path); !ok || got != info {
		t.Errorf("%s is read as %+v, %v", info.Path, got, ok)
	}
	for _, bad := range []string{"", "x.db", "20260301T003000Z-42.db", "20260301T003000Z-x-manual.db", "20260301T003000Z--1-manual.db",
		"20261301T003000Z-42-manual.db", "20260301T003000Z-42-manual", "20260301T003000Z-42-.db", "20260301T003000Z-42-Manual.db", fmt.Sprint(begin)} {
		if got, ok := parseName(bad); ok {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}
