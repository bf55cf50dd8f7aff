package engine

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
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

// serverConfig is the whole configuration of a member. One without peers has no listener; none does periodic work or compacts by itself.
func serverConfig(cfg Config, log *zap.Logger) (config.ServerConfig, error) {
	sc, err := soloConfig(cfg, log)
	if err != nil || cfg.Peers == nil {
		return sc, err
	}
	return withPeers(sc, cfg)
}

// withPeers makes the configuration of a member that is alone that of one with others.
func withPeers(sc config.ServerConfig, cfg Config) (config.ServerConfig, error) {
	p := cfg.Peers
	if err := p.check(cfg.NodeName); err != nil {
		return sc, fmt.Errorf("%w: %w", errPeers, err)
	}
	urls, err := p.urls()
	if err != nil {
		return sc, fmt.Errorf("%w: %w", errPeers, err)
	}
	sc.PeerURLs, sc.PeerTLSInfo, sc.LocalAddress = urls, p.tlsInfo(), p.Source
	sc.TickMs, sc.ElectionTicks = peerTickMs, peerElectionTicks
	if sc.InitialPeerURLsMap == nil {
		return sc, nil // it has members already
	}
	if sc.InitialPeerURLsMap, err = p.cluster(cfg.NodeName); err != nil {
		return sc, fmt.Errorf("%w: %w", errPeers, err)
	}
	if p.Token != "" {
		sc.InitialClusterToken = p.Token
	}
	sc.NewCluster = !p.Join
	return sc, nil
}

// soloConfig is the configuration of a member that is alone.
func soloConfig(cfg Config, log *zap.Logger) (config.ServerConfig, error) {
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
