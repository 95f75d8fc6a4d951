package image

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// By these annotations of a layout's index containerd and others know what to
// call the image.
const (
	nameAnnotation      = "io.containerd.image.name"
	referenceAnnotation = "org.opencontainers.image.ref.name"
)

// dockerManifest is an entry of `docker save`'s index.
type dockerManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Write writes an image as a tarball under a name, as [HOST/]NAME:TAG: see the
// package comment for what reads it.
func Write(w io.Writer, img v1.Image, name string) error {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return fmt.Errorf("image name %q: %w", name, err)
	}
	tagged, ok := named.(reference.NamedTagged)
	if !ok {
		return fmt.Errorf("image name %q has no tag; give it one, as in %s:0.1.0", name, name)
	}
	t := &tarWriter{tar.NewWriter(w)}
	if err := t.all(img, tagged); err != nil {
		return fmt.Errorf("image %s: %w", name, err)
	}
	return t.Close()
}

type tarWriter struct {
	*tar.Writer
}

func (t *tarWriter) all(img v1.Image, name reference.NamedTagged) error {
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: img,
		Descriptor: v1.Descriptor{
			Platform:    config.Platform(),
			Annotations: map[string]string{nameAnnotation: name.String(), referenceAnnotation: name.Tag()},
		},
	})
	text, err := index.RawManifest()
	if err != nil {
		return err
	}
	if err := t.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	if err := t.file("index.json", text); err != nil {
		return err
	}
	docker, err := t.blobs(img)
	if err != nil {
		return err
	}
	docker.RepoTags = []string{reference.FamiliarString(name)}
	text, err = json.Marshal([]dockerManifest{docker})
	if err != nil {
		return err
	}
	return t.file("manifest.json", text)
}

// blobs writes all that the index leads to, and says where it is.
func (t *tarWriter) blobs(img v1.Image) (d dockerManifest, err error) {
	digest, err := img.Digest()
	if err != nil {
		return d, err
	}
	manifest, err := img.RawManifest()
	if err != nil {
		return d, err
	}
	if err := t.file(blob(digest), manifest); err != nil {
		return d, err
	}
	if digest, err = img.ConfigName(); err != nil {
		return d, err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return d, err
	}
	d.Config = blob(digest)
	if err := t.file(d.Config, config); err != nil {
		return d, err
	}
	layers, err := img.Layers()
	if err != nil {
		return d, err
	}
	for _, l := range layers {
		if digest, err = l.Digest(); err != nil {
			return d, err
		}
		r, err := l.Compressed()
		if err != nil {
			return d, err
		}
		content, err := io.ReadAll(r)
		_ = r.Close() // all was read
		if err != nil {
			return d, err
		}
		d.Layers = append(d.Layers, blob(digest))
		if err := t.file(blob(digest), content); err != nil {
			return d, err
		}
	}
	return d, nil
}

func blob(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// file writes a file with no time and no owner, so that nothing but its content
// tells two tarballs apart.
func (t *tarWriter) file(name string, content []byte) error {
	err := t.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o644, ModTime: time.Unix(0, 0).UTC(), Format: tar.FormatPAX})
	if err != nil {
		return err
	}
	return write(t, content)
}
