// Command standalone publishes a website without any API server. The store is a file: what it was told once, it knows still.
//
//	go run ./examples/websites/standalone www shop "Welcome to my shop"
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/examples/websites"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	store, err := storage.OpenBolt(os.Args[1] + ".db")
	check(err)
	plane, err := operator.NewControlPlane(websites.Publisher{Folder: os.Args[1]}, operator.OperatorConfig{}, store)
	check(err)
	if len(os.Args) > 3 {
		check(plane.AddManifest(ctx, os.Args[2], websites.Website{Title: os.Args[2], Pages: map[string]string{"index": os.Args[3]}}))
	}
	check(plane.Execute(ctx))
	check(store.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
