package health

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeactor/nodeactor/store"
)

// StoreFacts is what the store is asked for at each scrape.
type StoreFacts interface {
	Revision() int64
	Counts() map[string]int
	Stats() store.Stats
	// Refusal is why a write that needs room would be refused now, or nil.
	Refusal() error
}

// The series of the store. Counters count since the process began.
var (
	revisionDesc  = desc("nodeactor_store_revision", "Newest revision of the store.")
	objectsDesc   = desc("etcd_object_counts", "Stored objects by resource.", "resource")
	sizeDesc      = desc("nodeactor_store_db_size_bytes", "Size of the store's file.")
	inUseDesc     = desc("nodeactor_store_db_in_use_bytes", "What of the store's file holds data.")
	quotaDesc     = desc("nodeactor_store_quota_bytes", "What the store's file may hold before writes that need room are refused.")
	compactedDesc = desc("nodeactor_store_compacted_revision", "Revision before which history is gone from the disk.")
	lagDesc       = desc("nodeactor_store_compaction_lag_revisions", "Revisions of history that are kept.")
	tendedDesc    = desc("nodeactor_store_compaction_lag_seconds", "Time since history was last looked through for what can be forgotten; five minutes are usual.")
	syncsDesc     = desc("nodeactor_store_fsync_total", "Waits for the disk by the store, by file: log or database.", "file")
	commitDesc    = desc("nodeactor_store_commit_seconds", "Time of writes from their beginning until they were durable.")
	pendingDesc   = desc("nodeactor_store_proposals_pending", "Writes that have begun and not ended.")
	heldDesc      = desc("nodeactor_store_waiting_writers", "Writes that are held back until the disk keeps up, or a rewrite of the file has ended.")
	refusedDesc   = desc("nodeactor_store_refused_writes_total", "Writes that were refused, by reason: quota, disk or stalled.", "reason")
	refusingDesc  = desc("nodeactor_store_refusing", "1 while writes that need room are refused.")
	defragsDesc   = desc("nodeactor_store_defrags_total", "Rewrites of the store's file without its holes, by result.", "result")
	defragDesc    = desc("nodeactor_store_defrag_seconds_total", "Time that rewrites of the store's file took; writes wait meanwhile.")
	reclaimedDesc = desc("nodeactor_store_defrag_freed_bytes_total", "What rewrites of the store's file gave back to the disk.")
	snapshotDesc  = desc("nodeactor_store_last_snapshot_age_seconds", "Age of the newest snapshot of the store.")
	sentDesc      = desc("nodeactor_store_watch_events_total", "Events that watches of the API have sent, without those of resources with very few watches.")
	encodedDesc   = desc("nodeactor_store_watch_encodings_total", "Encodings that those events took: one serves all watches that want the same.")

	storeDescs = []*prometheus.Desc{
		revisionDesc, objectsDesc, sizeDesc, inUseDesc, quotaDesc, compactedDesc, lagDesc, tendedDesc, syncsDesc, commitDesc, pendingDesc, heldDesc,
		refusedDesc, refusingDesc, defragsDesc, defragDesc, reclaimedDesc, snapshotDesc,
		sentDesc, encodedDesc,
	}
)

func (c *Collector) collectStore(out samples) {
	facts := c.Facts()
	if facts == nil {
		return
	}
	out.gauge(revisionDesc, float64(facts.Revision()))
	for resource, n := range facts.Counts() {
		out.gauge(objectsDesc, float64(n), resource)
	}
	st := facts.Stats()
	out.counter(sentDesc, float64(st.WatchEvents))
	out.counter(encodedDesc, float64(st.WatchEncodings))
	if st.Local {
		collectHistory(out, st)
		collectWrites(out, st, facts.Refusal())
		collectFile(out, st)
	}
	if c.LastSnapshot != nil {
		if at, ok := c.LastSnapshot(); ok {
			out.gauge(snapshotDesc, c.System.Clock().Now().Sub(at).Seconds())
		}
	}
}

func collectHistory(out samples, st store.Stats) {
	if st.CompactedRevision > 0 {
		out.gauge(compactedDesc, float64(st.CompactedRevision))
	}
	out.gauge(lagDesc, float64(st.Revision-st.CompactedRevision))
	out.gauge(tendedDesc, st.TendedFor.Round(time.Millisecond).Seconds())
}

func collectWrites(out samples, st store.Stats, refusal error) {
	out <- prometheus.MustNewConstHistogram(commitDesc, st.Commits.Count, st.Commits.Sum, st.Commits.Buckets)
	out.gauge(pendingDesc, float64(st.Pending))
	out.gauge(heldDesc, float64(st.Held))
	for reason, n := range st.Refused {
		out.counter(refusedDesc, float64(n), reason)
	}
	refusing := 0.0
	if refusal != nil {
		refusing = 1
	}
	out.gauge(refusingDesc, refusing)
}

func collectFile(out samples, st store.Stats) {
	out.gauge(sizeDesc, float64(st.DBSize))
	out.gauge(inUseDesc, float64(st.DBInUse))
	out.gauge(quotaDesc, float64(st.Quota))
	if st.Syncs != nil {
		out.counter(syncsDesc, float64(st.Syncs.Log), "log")
		out.counter(syncsDesc, float64(st.Syncs.Database), "database")
	}
	out.counter(defragsDesc, float64(st.Defrags), "success")
	out.counter(defragsDesc, float64(st.FailedDefrags), "error")
	out.counter(defragDesc, st.DefragTime.Seconds())
	out.counter(reclaimedDesc, float64(st.Reclaimed))
}
