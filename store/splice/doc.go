// Package splice encodes lists from the encodings of their items, each made once per version of an object.
//
// Wrap goes round the serializer of an API group. A list of many typed objects is then written as its own head, encoded by the
// serializer as always, and the bytes of its items, remembered by UID and resource version: an object that has not changed is copied,
// not converted and encoded again. The bytes are those that the serializer would have written. Everything else passes through.
package splice
