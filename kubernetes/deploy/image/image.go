package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// User is the number of the user, and of the group, that the program runs as:
// the nonroot of many small images. The image has no file that names it.
const User = 65532

// Spec says what an image is made of.
type Spec struct {
	// Program is the file of a static Linux program; the image has it, and starts
	// it, under its name in the root folder.
	Program string
	// Version is of the program; "" is none.
	Version string
	// Labels beside those that follow from the other fields.
	Labels map[string]string
	// Created is when it was made, as the image says; the zero time is 1970, since
	// the same input must give the same bytes.
	Created time.Time
}

// architectures are Go's names, which OCI takes, for what a program says.
var architectures = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// New makes an image for the architecture that the program was built for. A
// program that needs a loader or libraries is an error: the image has none.
func New(s Spec) (v1.Image, error) {
	architecture, err := static(s.Program)
	if err != nil {
		return nil, err
	}
	if s.Created.IsZero() {
		s.Created = time.Unix(0, 0)
	}
	s.Created = s.Created.UTC()
	path := "/" + filepath.Base(s.Program)
	content, err := archive(s.Program, path, s.Created)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("layer of %s: %w", s.Program, err)
	}
	labels := map[string]string{
		"org.opencontainers.image.title":    filepath.Base(s.Program),
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source":   "https://github.com/cotenant/cotenant",
	}
	if s.Version != "" {
		labels["org.opencontainers.image.version"] = s.Version
	}
	maps.Copy(labels, s.Labels)
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		Architecture: architecture, OS: "linux", Created: v1.Time{Time: s.Created}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       fmt.Sprintf("%d:%d", User, User),
			Entrypoint: []string{path},
			WorkingDir: "/",
			Labels:     labels,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("configuration of the image: %w", err)
	}
	return mutate.Append(img, mutate.Addendum{
		Layer:     layer,
		MediaType: types.OCILayer,
		History:   v1.History{Created: v1.Time{Time: s.Created}, CreatedBy: "the static program " + path},
	})
}

// static is the architecture of a program that needs nothing but the kernel.
func static(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", fmt.Errorf("%s is no Linux program: %w", program, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", fmt.Errorf("%s needs a loader and libraries, which the image lacks; build it with CGO_ENABLED=0", program)
		}
	}
	architecture, ok := architectures[f.Machine]
	if !ok {
		return "", fmt.Errorf("%s is for %v; images are made for x86-64 and AArch64", program, f.Machine)
	}
	return architecture, nil
}

// archive is the file system of the image: the program, as root's, so that who
// runs it cannot change it.
func archive(program, path string, at time.Time) ([]byte, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err = errors.Join(
		w.WriteHeader(&tar.Header{Name: path[1:], Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o555, ModTime: at, Format: tar.FormatPAX}),
		write(w, content),
		w.Close(),
	)
	if err != nil {
		return nil, fmt.Errorf("archive %s: %w", program, err)
	}
	return out.Bytes(), nil
}

func write(w io.Writer, content []byte) error {
	_, err := w.Write(content)
	return err
}
