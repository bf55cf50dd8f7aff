// Package endpoints keeps the Endpoints object of every Service that selects pods.
//
// compute.go makes the wanted object from Service and pods; controller.go writes it when it differs. An Endpoints object goes with
// its Service.
package endpoints
