// Package images keeps the container images of one node: it pulls them from registries, imports them from archives,
// unpacks their layers into directories an overlay mount can use as they are, and forgets them again.
//
// # What it is for
//
// The kubelet asks Lookup for an image before it starts a container and Pull when the image is missing or must be
// checked again. Both give an Image whose Layers are directories, top first, ready to be the lower directories of an
// overlay. There is no image service, no socket and no copy per container.
//
// # The caller's duties
//
//  1. Open one Store per directory and keep it for the life of the process; the ledger is shared and outlives it.
//  2. Give every Pull a context that ends. A pull that makes no progress ends by itself (ErrStalled), one that does may
//     take as long as the image is large.
//  3. Treat an Image as read-only: its slices are shared with the store. Never write into a layer directory.
//  4. Pass GC a function that knows every layer directory a container uses or is about to use. Remove only forgets a
//     name; GC alone deletes layers.
//
// # What may run in parallel
//
// Everything. Pulls of different images do not wait for each other; pulls of one reference share one transfer. Lookup
// never waits for a pull.
//
// # Glossary
//
//   - reference: what a pod names, for example nginx, nginx:1.27 or repo@sha256:…; normalised before use.
//   - digest: the hash of the manifest, or of the index of manifests, a reference led to.
//   - image ID: the hash of the image's config; equal IDs are the same image.
//   - diff ID: the hash of one unpacked layer archive; names the layer's directory.
//   - chain ID: the hash of a layer together with all below it; names the directory of a layer that could only be
//     unpacked with the help of the layers below it.
package images
