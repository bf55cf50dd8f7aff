// Package program is the nodeactor program: its command line and what it runs. A program of one's own is a main package that calls Main, with
// operators that run in its node:
//
//	func main() {
//		program.Main(program.Operator(websites{}, operator.OperatorConfig{}))
//	}
//
// It has the same commands as nodeactor. Like nodeactor, it finds nodeactor-runtime and nodeactor-kubectl in its own folder.
package program
