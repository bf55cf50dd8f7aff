// Package readme does what the manual tells a new user to do.
package readme
