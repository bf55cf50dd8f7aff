package network

import (
	"errors"
	"net/netip"
	"testing"
)

func TestPickRangeGoesRoundOnce(t *testing.T) {
	all := func(words ...string) (used []route) {
		for _, w := range words {
			used = append(used, route{netip.MustParsePrefix(w), "x"})
		}
		return used
	}
	for _, test := range []struct {
		start byte
		used  []route
		want  string
	}{
		{0, nil, "10.244.0.0/24"},
		{7, nil, "10.244.7.0/24"},
		{0, all("10.244.0.0/23"), "10.244.2.0/24"},
		{255, all("10.244.255.128/25"), "10.244.0.0/24"},
		{3, all("192.0.2.0/24", "10.244.3.0/24", "10.244.4.7/32"), "10.244.5.0/24"},
	} {
		if got, err := pickRange(test.start, test.used); err != nil || got.String() != test.want {
			t.Errorf("from %d with %v used: %v, %v, want %s", test.start, test.used, got, err, test.want)
		}
	}
	if _, err := pickRange(9, all("10.0.0.0/8")); !errors.Is(err, ErrFull) {
		t.Errorf("with all used: %v", err)
	}
}

func TestChosenRangeStays(t *testing.T) {
	enterNewNode(t)
	kept := memoryLedger{}
	first, err := ChooseCIDR(DefaultDataDir, kept)
	must(t, err)
	if first.String() != "10.244.0.0/24" {
		t.Errorf("the default node gets %v", first)
	}
	cfg := testConfig(memoryLedger{})
	cfg.PodCIDR = first
	n := open(t, cfg)
	must(t, n.Setup(bounded(t)))
	other, err := ChooseCIDR(DefaultDataDir, memoryLedger{})
	must(t, err)
	if other.Overlaps(first) {
		t.Errorf("a second node gets %v beside %v", other, first)
	}
	if again, err := ChooseCIDR(DefaultDataDir, kept); again != first || err != nil {
		t.Errorf("the first node gets %v the second time, %v", again, err)
	}
}
