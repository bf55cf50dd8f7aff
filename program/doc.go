// Package program is the nodeactor program: its command line and what it runs. A program of one's own is a main package that calls Main.
package program
