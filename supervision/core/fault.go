package core

// FaultKind is the closed list of what can go wrong with a child. It grows only at the end.
type FaultKind uint8

// The kinds of fault.
const (
	// Panic is a panic, or a Goexit, in Receive or in a job.
	Panic FaultKind = iota
	// Hang is a message or job that makes no progress, or a start that is never acknowledged.
	Hang
	// ErrorReturn is an error from Receive.
	ErrorReturn
	// BindFailure is a listener that cannot get its address; it never counts against a budget.
	BindFailure
	// NumFaultKinds is how many kinds there are.
	NumFaultKinds
)

var faultNames = [NumFaultKinds]string{"Panic", "Hang", "ErrorReturn", "BindFailure"}

// String is the kind's name in logs, metrics and the catalog.
func (k FaultKind) String() string {
	if k < NumFaultKinds {
		return faultNames[k]
	}
	return "Unknown"
}

// ParseFaultKind is the inverse of String; it also takes lower case.
func ParseFaultKind(s string) (FaultKind, bool) {
	for k, name := range faultNames {
		if equalFold(s, name) {
			return FaultKind(k), true
		}
	}
	return 0, false
}

func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i]|0x20 != b[i]|0x20 {
			return false
		}
	}
	return true
}
