package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/nodeactor/nodeactor/store/engine"
)

// What is kept beside the newest periodic ones. Those that somebody saved by hand are never removed: only a person knows what they are for.
const (
	// keepDays is of how many days, by UTC, the newest periodic one is kept.
	keepDays = 7
	// keepUpgrades is how many of those from before an upgrade are kept.
	keepUpgrades = 5
	// keepMemberships is how many of those from before a change of the members are kept.
	keepMemberships = 10
)

// Prune removes the snapshots of dir whose time is over and returns them, the newest first. It keeps the newest periodic ones, as many as keep
// says, the newest of each of the last seven days that have any, five from before upgrades, ten from before changes of the members, all that
// were saved by hand, and good: one that the caller knows to be good.
func Prune(dir string, keep int, good Info) (removed []Info, err error) {
	all, err := collect(dir)
	if err != nil {
		return nil, err
	}
	for _, info := range over(all, keep) {
		if info.Path == good.Path {
			continue
		}
		if err := os.Remove(info.Path); err != nil {
			return removed, fmt.Errorf("cannot remove old snapshot: %w", err)
		}
		removed = append(removed, info)
	}
	return removed, nil
}

func collect(dir string) (all []Info, err error) {
	for info, err := range List(dir) {
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

// over are those of all, which are in order, whose time is over.
func over(all []Info, keep int) (gone []Info) {
	counts, days := map[string]int{}, map[string]bool{}
	for _, info := range all {
		counts[info.Reason]++
		day := info.Time.UTC().Format("20060102")
		newDay := info.Reason == Periodic && !days[day]
		if newDay {
			days[day] = true
		}
		if !kept(info.Reason, counts[info.Reason], keep) && !(newDay && len(days) <= keepDays) {
			gone = append(gone, info)
		}
	}
	return gone
}

// kept tells whether the n-th newest snapshot of a reason stays because of that alone.
func kept(reason string, n, keep int) bool {
	switch reason {
	case Periodic:
		return n <= keep
	case Upgrade:
		return n <= keepUpgrades
	case Membership:
		return n <= keepMemberships
	}
	return true
}

// MakeRoom removes periodic snapshots of dir, the oldest first, until the disk has room for a new one of n bytes, or until only the newest one
// that verifies is left. It returns what it has removed. Nothing is removed while no snapshot verifies.
func MakeRoom(ctx context.Context, dir string, n int64) (removed []Info, err error) {
	if engine.FreeBytes(dir) >= n+spareBytes {
		return nil, nil
	}
	good, err := Newest(ctx, dir)
	if errors.Is(err, ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := collect(dir)
	if err != nil {
		return nil, err
	}
	for _, info := range slices.Backward(all) {
		if info.Reason != Periodic || info.Path == good.Path {
			continue
		}
		if engine.FreeBytes(dir) >= n+spareBytes {
			break
		}
		if err := os.Remove(info.Path); err != nil {
			return removed, fmt.Errorf("cannot remove old snapshot: %w", err)
		}
		removed = append(removed, info)
	}
	return removed, nil
}
