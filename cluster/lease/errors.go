package lease

import "errors"

// ErrFenced is returned when a write carries a fence that is not that of the lease's present holder. The writer has lost the lease: it
// stops, and somebody else goes on.
var ErrFenced = errors.New("fenced: the lease has another holder or epoch")

// ErrConflict is returned when a record is not at the revision that was expected. Nothing was written; read it and decide anew.
var ErrConflict = errors.New("the lease has changed")

// ErrEpoch is returned when a record must not follow the one before it, as when its epoch would go down. It is a bug of the writer.
var ErrEpoch = errors.New("the epoch of a lease must go up by one with each new holder and never otherwise")

// ErrSessionEnded is returned when a session is renewed that was ended of late. Its node opens no other before its next boot.
var ErrSessionEnded = errors.New("the session was ended")
