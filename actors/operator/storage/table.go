package storage

// The buckets of a store.
const (
	objects = "objects" // by ID.Key: revision and value
	leases  = "leases"  // by the key of the manifest
	history = "history" // by revision: which key of which bucket was written
	meta    = "meta"
)

// metaRevision is the key of the last revision in meta.
const metaRevision = "revision"

// table is what one transaction sees of a store: buckets of values by their keys. What get and each give is valid until the transaction
// ends and must not be changed; put keeps what it is given.
type table interface {
	get(bucket, key string) []byte
	put(bucket, key string, value []byte) error
	remove(bucket, key string) error
	// each visits the keys above after that begin with prefix, in order, until visit returns false.
	each(bucket, prefix, after string, visit func(key string, value []byte) bool) error
}

// backend is where a table lasts.
type backend interface {
	view(f func(table) error) error
	// update does what f does in one transaction, all of it or, when f or update returns an error, nothing.
	update(f func(table) error) error
	close() error
}
