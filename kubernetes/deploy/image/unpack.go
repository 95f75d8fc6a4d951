package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Unpack unpacks the image of a tarball into a folder, as a container runtime
// makes the root of a container, and says how it is to be started.
func Unpack(path, root string) (*v1.Config, error) {
	img, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", path, err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", path, err)
	}
	files := mutate.Extract(img)
	defer files.Close()
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return &config.Config, nil
		}
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", path, err)
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			return nil, fmt.Errorf("image %s has %s of type %q; New makes regular files alone", path, h.Name, h.Typeflag)
		}
		if err := place(filepath.Join(root, h.Name), r, h.FileInfo().Mode()); err != nil {
			return nil, fmt.Errorf("image %s: %w", path, err)
		}
	}
}

func place(path string, content io.Reader, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}
