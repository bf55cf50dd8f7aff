// Package volumes prepares the volumes of pods below their directories, keeps their content up to date, and removes them.
//
// # What it is for
//
// [Manager.Mount] makes every volume of a pod and says where each is; the runtime binds these paths into containers.
// [Manager.Refresh] brings config maps, secrets, tokens and downward API files up to date by an atomic switch of one
// symbolic link, so that a reader sees all of the old files or all of the new. [Manager.Unmount] takes everything apart.
//
// # The caller's duties
//
//  1. At most one call for one pod at a time; different pods may go in parallel.
//  2. Unmount only when no container of the pod lives.
//
// # Rules
//
//   - Unmount first; a directory tree is deleted only when no mount point is left below it.
//   - A source that cannot be read while its earlier content is on disk is served from there: a node without a server
//     goes on working.
//   - A volume of a kind this node does not know is an error that names it; the pod waits.
package volumes
