package program

// extra is what a program adds to the node that everybody has.
type extra struct{}

// extras are those of this program.
var extras extra

// Option adds something to the node that a program runs.
type Option func(*extra)

// Version says which version of the program this is; it is shown by the API, in logs and by the command version.
func Version(v string) Option { return func(*extra) { version = v } }
