// Command standalone publishes a website without any API server: what it was told last time it knows still.
//
//	go run ./examples/websites/standalone -folder /tmp/www -name shop -title "My shop" -text Welcome
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/examples/websites"
)

func main() {
	folder := flag.String("folder", "www", "`folder` of the websites")
	name, title, text := flag.String("name", "", "of a website to declare"), flag.String("title", "", "its title"), flag.String("text", "", "its text")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	store, err := storage.OpenBolt(filepath.Clean(*folder) + ".db")
	check(err)
	defer store.Close()
	plane, err := operator.NewControlPlane(websites.Publisher{Folder: *folder}, operator.OperatorConfig{}, store)
	check(err)
	if *name != "" {
		check(plane.AddManifest(ctx, *name, websites.Website{Title: *title, Pages: map[string]string{"index": *text}}))
	}
	check(plane.Execute(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
