// Command image makes a container image, as a tarball, of a static program:
//
//	image --program bin/static/cotenant-scheduler --name cotenant-scheduler:0.1.0 --out bin/cotenant-scheduler.tar
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/kubernetes/deploy/image"
)

func main() {
	if err := command().Execute(); err != nil {
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var s image.Spec
	var name, out string
	c := &cobra.Command{
		Use:   "image --program FILE --name NAME:TAG --out FILE",
		Short: "make a container image, as a tarball, of a static program",
		Long: `Makes a container image of a static Linux program, which docker load, podman
load, ctr images import and kind load image-archive read. The same program and
flags give the same bytes.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(c *cobra.Command, _ []string) error {
			img, err := image.New(s)
			if err != nil {
				return err
			}
			if err := save(out, func(f *os.File) error { return image.Write(f, img, name) }); err != nil {
				return err
			}
			digest, err := img.Digest()
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s, %s\n", out, name, digest)
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&s.Program, "program", "", "the program, built with CGO_ENABLED=0")
	f.StringVar(&s.Version, "version", "", "of the program, for the image's labels")
	f.StringToStringVar(&s.Labels, "label", nil, "more labels, as KEY=VALUE")
	f.StringVar(&name, "name", "", "the image's name and tag, with the host of a registry where it is for one")
	f.StringVarP(&out, "out", "o", "", "the tarball to write")
	for _, required := range []string{"program", "name", "out"} {
		if err := c.MarkFlagRequired(required); err != nil {
			panic(err) // a flag that was not defined above
		}
	}
	return c
}

// save writes a file whole or not at all.
func save(path string, content func(*os.File) error) error {
	f, err := os.Create(path + ".part")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := content(f); err != nil {
		_ = f.Close() // what is written is dropped
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
