// Package registry runs a container registry on the loopback interface for tests, and builds the images to put into it.
//
// A test starts one with Start, fills it with Push, and pulls by the reference Push returns. What a registry can do
// wrong is switched on per registry: require credentials, refuse, stall in the middle of a layer, damage a blob. Nothing
// ever leaves the loopback interface.
//
// Package image beside it builds the images; DemoImage is the one of cmd/demo.
package registry
