package engine

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/features"
	"go.uber.org/zap"
)

// serverConfig is the whole configuration of a member that is alone: no listener, no periodic work, no own compaction.
func serverConfig(cfg Config, log *zap.Logger) (config.ServerConfig, error) {
	urls := types.MustNewURLs([]string{peerURL})
	sc := config.ServerConfig{
		Name:                        cfg.NodeName,
		PeerURLs:                    urls,
		DataDir:                     cfg.Dir,
		SnapshotCount:               snapshotEvery,
		SnapshotCatchUpEntries:      etcdserver.DefaultSnapshotCatchUpEntries,
		MaxSnapFiles:                embed.DefaultMaxSnapshots,
		MaxWALFiles:                 embed.DefaultMaxWALs,
		BackendBatchInterval:        commitEvery,
		BackendFreelistType:         bbolt.FreelistMapType,
		NewCluster:                  true,
		TickMs:                      soloTickMs,
		ElectionTicks:               soloElectionTicks,
		InitialElectionTickAdvance:  true,
		QuotaBackendBytes:           hardQuota(cfg.QuotaBytes),
		MaxTxnOps:                   embed.DefaultMaxTxnOps,
		MaxRequestBytes:             maxValueBytes,
		MaxConcurrentStreams:        embed.DefaultMaxConcurrentStreams,
		WarningApplyDuration:        embed.DefaultWarningApplyDuration,
		WarningUnaryRequestDuration: embed.DefaultWarningUnaryRequestDuration,
		StrictReconfigCheck:         true,
		AuthToken:                   embed.DefaultAuthToken,
		PreVote:                     true,
		Logger:                      log,
		MaxLearners:                 1,
		V2Deprecation:               config.V2DeprDefault,
		ServerFeatureGate:           features.NewDefaultServerFeatureGate(cfg.NodeName, log),
		Metrics:                     "basic",
		BootstrapTimeout:            time.Second,
	}
	if _, err := os.Stat(sc.WALDir()); err == nil {
		return sc, nil
	}
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return sc, err
	}
	sc.InitialClusterToken = hex.EncodeToString(token)
	sc.InitialPeerURLsMap = types.URLsMap{cfg.NodeName: urls}
	return sc, nil
}
