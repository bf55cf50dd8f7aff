// Package replicaset keeps as many pods of one template as a ReplicaSet asks for.
//
// decide.go turns what is observed into how many pods to create and which to delete; status.go into the status; executor.go does
// both. Failed and succeeded pods are replaced and not counted, as are pods on their way out.
package replicaset
