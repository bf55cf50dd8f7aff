// Package podspec turns a pod of the API into what the runtime starts: environment, command line, user, mounts,
// resources, and the files every container gets.
//
// Everything here is a function of its arguments but for [WriteFiles] and [SubPaths], which work on the pod's directory.
package podspec
