package image_test

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/cotenant/cotenant/kubernetes/deploy/image"
)

// program builds a program that says who it is and what it sees.
func program(t testing.TB, env ...string) string {
	t.Helper()
	dir := t.TempDir()
	source := `package main

import ("fmt"; "os")

func main() {
	all, _ := os.ReadDir("/")
	err := os.WriteFile("/x", nil, 0o600)
	fmt.Println(os.Getuid(), os.Getgid(), len(all), all[0].Name(), err != nil, os.Args[1:])
}
`
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "hello")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", out, filepath.Join(dir, "main.go"))
	build.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux"), env...)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

func written(t testing.TB, s image.Spec, name string) []byte {
	t.Helper()
	img, err := image.New(s)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := image.Write(&out, img, name); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// save puts a tarball into a file, and its files into a folder.
func save(t testing.TB, content []byte) (path, dir string) {
	t.Helper()
	path, dir = filepath.Join(t.TempDir(), "image.tar"), t.TempDir()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return path, dir
		}
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, h.Name)
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Both readings of the tarball, as OCI's layout and as docker's, are whole and
// of the same image.
func TestTarball(t *testing.T) {
	s := image.Spec{Program: program(t), Version: "1.2.3", Labels: map[string]string{"a": "b"}}
	content := written(t, s, "cotenant-scheduler:1.2.3")
	if again := written(t, s, "cotenant-scheduler:1.2.3"); !bytes.Equal(content, again) {
		t.Error("the same program gives other bytes")
	}
	path, dir := save(t, content)

	l, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	index, err := l.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("index %+v (%v)", manifest, err)
	}
	d := manifest.Manifests[0]
	if d.Annotations["io.containerd.image.name"] != "docker.io/library/cotenant-scheduler:1.2.3" || d.Annotations["org.opencontainers.image.ref.name"] != "1.2.3" ||
		d.MediaType != types.OCIManifestSchema1 || d.Platform.String() != "linux/"+arch(t, s.Program) {
		t.Errorf("the index has %+v, platform %v", d, d.Platform)
	}

	img, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	var docker []struct{ RepoTags, Layers []string }
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(text, &docker)
	}
	if err != nil || docker[0].RepoTags[0] != "cotenant-scheduler:1.2.3" || len(docker[0].Layers) != 1 {
		t.Errorf("manifest.json: %s (%v)", text, err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if c.User != "65532:65532" || len(c.Entrypoint) != 1 || c.Entrypoint[0] != "/hello" || c.Labels["a"] != "b" ||
		c.Labels["org.opencontainers.image.version"] != "1.2.3" || config.Created.Unix() != 0 {
		t.Errorf("configuration %+v, created %v", c, config.Created)
	}
}

func arch(t *testing.T, program string) string {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range info.Settings {
		if s.Key == "GOARCH" {
			return s.Value
		}
	}
	t.Fatal("no GOARCH")
	return ""
}

func TestOtherArchitecture(t *testing.T) {
	img, err := image.New(image.Spec{Program: program(t, "GOARCH=arm64"), Created: time.Unix(1e9, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := img.ConfigFile(); err != nil || c.Architecture != "arm64" || c.Created.Unix() != 1e9 {
		t.Errorf("%+v (%v)", c, err)
	}
}

func TestBadInput(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := image.New(image.Spec{Program: text}); err == nil || !strings.Contains(err.Error(), "no Linux program") {
		t.Errorf("a script: %v", err)
	}
	if _, err := image.New(image.Spec{Program: "/bin/ls"}); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("a dynamic program: %v", err)
	}
	img, err := image.New(image.Spec{Program: program(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "UPPER:1", "no-tag"} {
		if err := image.Write(io.Discard, img, name); err == nil {
			t.Errorf("name %q: no error", name)
		}
	}
}

// TestStarts runs what the image says, in a root that holds the image alone.
func TestStarts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may change the root of a program")
	}
	path, _ := save(t, written(t, image.Spec{Program: program(t)}, "hello:1"))
	root := t.TempDir()
	c, err := image.Unpack(path, root)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Entrypoint[0], "--version")
	cmd.Env, cmd.Dir = []string{}, c.WorkingDir
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: image.User, Gid: image.User}}
	out, err := cmd.CombinedOutput()
	if want := "65532 65532 1 hello true [--version]\n"; err != nil || string(out) != want {
		t.Errorf("it says %q (%v), want %q", out, err, want)
	}
}

func Example() {
	_, err := image.New(image.Spec{Program: "doc.go"})
	fmt.Println(err != nil) // no program
	// Output: true
}
