package services

import (
	"math/rand"
	"net/netip"
	"slices"
	"testing"
)

// TestStickySlotsKeepWhatTheyPromise replaces and removes backends at random: those that stay keep a slot they had, all
// wanted have one, nothing else has, the same again changes nothing, and replacing one by one does not let slots grow.
func TestStickySlotsKeepWhatTheyPromise(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	var slots []netip.AddrPort
	most := 0
	for range 3000 {
		var want []netip.AddrPort
		for _, n := range random.Perm(12)[:random.Intn(7)] {
			want = append(want, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), 80))
		}
		next := placeSticky(slots, want)
		for i, b := range next {
			if !slices.Contains(want, b) {
				t.Fatalf("slot %d has %v, wanted are %v", i, b, want)
			}
		}
		for _, b := range want {
			kept := slices.ContainsFunc(indices(slots, b), func(i int) bool { return next[i] == b })
			if at := slices.Index(next, b); at < 0 || slices.Contains(slots, b) && !kept {
				t.Fatalf("%v lost its slot: %v became %v", b, slots, next)
			}
		}
		if again := placeSticky(next, want); !slices.Equal(again, next) {
			t.Fatalf("the same again: %v became %v", next, again)
		}
		most, slots = max(most, len(next)), next
	}
	if most > 6 {
		t.Errorf("%d slots for at most 6 backends", most)
	}
}

func indices(slots []netip.AddrPort, b netip.AddrPort) (at []int) {
	for i, s := range slots {
		if s == b {
			at = append(at, i)
		}
	}
	return at
}
