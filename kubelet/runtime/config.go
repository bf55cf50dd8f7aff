package runtime

import "log/slog"

// Config is what [Open] needs.
type Config struct {
	// Dir is the run directory, 0700, owned by one Engine at a time. It must not contain the helper binary nor lie below
	// the binary's directory: libcontainer would then copy the whole binary at each start.
	Dir string
	// HelperPath is the nodeactor-runtime binary.
	HelperPath string
	// CgroupRoot is the parent of all cgroups made here, absolute; "/nodeactor" when empty.
	CgroupRoot string
	// Ledger remembers every act before it happens.
	Ledger Ledger
	// Log gets one line per unusual thing.
	Log *slog.Logger
}

// Ledger is the part of the node's ledger used here; *ledger.Ledger has it. Values travel as JSON. Each call of Put is on
// disk when it returns.
type Ledger interface {
	Put(bucket, key string, v any) error
	Get(bucket, key string, v any) (bool, error)
	Delete(bucket, key string) error
	Each(bucket string, visit func(key string, raw []byte) error) error
}
