// Command demo is a small static program for demonstrations and tests: a web server that says who answers, and a few
// subcommands that behave in one exactly known way each.
//
//	demo [serve]         answer on :$PORT (8080) until SIGTERM
//	demo exit N          end with code N
//	demo sleep [D [N]]   wait for D (default: until SIGTERM), end with code N
//	demo tty             tell whether standard input is a terminal
//	demo spin            use one core until SIGTERM
//	demo alloc MB        allocate and touch MB megabytes, then wait for SIGTERM
//	demo env             print the environment, sorted
//	demo cat FILE...     print files
//	demo write FILE TEXT write a file
//	demo id              print uid, gid and groups
//	demo echo WORD...    print words
//	demo ignore-term     go on in spite of SIGTERM
//	demo upper           copy stdin to stdout in upper case
//	demo get URL         fetch a URL and print the body
package main

import (
	"fmt"
	"os"
)

// command is one subcommand; it returns the exit code.
type command func(args []string) int

func commands() map[string]command {
	return map[string]command{
		"serve": serve, "exit": exit, "sleep": sleep, "spin": spin, "alloc": alloc, "env": env, "cat": cat,
		"write": write, "id": id, "tty": tty, "echo": echo, "ignore-term": ignoreTerm, "upper": upper, "get": get,
	}
}

func main() {
	name, args := "serve", os.Args[1:]
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	run, ok := commands()[name]
	if !ok {
		os.Exit(fail("unknown command %q", name))
	}
	os.Exit(run(args))
}

// fail prints why the command was refused, and gives the code for wrong usage.
func fail(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "demo: "+format+"\n", args...)
	return 64
}
