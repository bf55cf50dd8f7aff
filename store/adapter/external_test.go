package adapter_test

import "testing"

// TestExternalEngine holds the storage over an etcd elsewhere to the same judges.
func TestExternalEngine(t *testing.T) {
	onExternal = true
	t.Cleanup(func() { onExternal = false })
	for name, run := range map[string]func(*testing.T){
		"Conformance": TestConformance, "ConformanceSlow": TestConformanceSlow, "ConformanceTransformed": TestConformanceTransformed,
		"Create": TestCreate, "GuaranteedUpdate": TestGuaranteedUpdate, "List": TestList, "ConsistentList": TestConsistentList,
		"GetListNonRecursive": TestGetListNonRecursive, "CompactRevision": TestCompactRevision,
		"ListInconsistentContinuation": TestListInconsistentContinuation, "WatchFromZero": TestWatchFromZero,
		"ProgressNotify": TestProgressNotify, "WatchDispatchBookmarkEvents": TestWatchDispatchBookmarkEvents, "ListCalls": TestListCalls,
		"Stats": TestStats, "UnreadableObjects": TestUnreadableObjects,
	} {
		t.Run(name, run)
	}
}
