// Command demo-image packs the demo program into a docker archive, one image per tag, without a builder or a network.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/nodeactor/nodeactor/test/registry/image"
)

// tagList collects the values of a flag that may be repeated.
type tagList []string

func (t *tagList) String() string { return strings.Join(*t, ",") }

func (t *tagList) Set(value string) error {
	*t = append(*t, value)
	return nil
}

func main() {
	var tags tagList
	output := flag.String("o", "demo-image.tar", "archive to write")
	binary := flag.String("binary", "demo", "static program to pack")
	format := flag.String("format", "docker", `archive format, "docker" or "oci"`)
	flag.Var(&tags, "tag", "reference of an image in the archive; may be repeated")
	flag.Parse()
	if err := pack(*output, *binary, *format, tags); err != nil {
		fmt.Fprintln(os.Stderr, "demo-image:", err)
		os.Exit(1)
	}
}

func pack(output, binary, format string, tags []string) error {
	if len(tags) == 0 {
		tags = []string{"nodeactor.io/demo:v1"}
	}
	images := map[string]v1.Image{}
	for _, tag := range tags {
		spec, err := image.Demo(binary, version(tag))
		if err != nil {
			return err
		}
		if images[tag], err = image.Build(spec); err != nil {
			return err
		}
	}
	switch format {
	case "docker":
		return image.WriteDockerArchive(output, images)
	case "oci":
		return image.WriteOCIArchive(output, images)
	}
	return fmt.Errorf("cannot write format %q: want docker or oci", format)
}

// version is the tag of a reference; the program tells it to whoever asks.
func version(ref string) string {
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		return ref[i+1:]
	}
	return "latest"
}
