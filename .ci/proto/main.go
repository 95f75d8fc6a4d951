// Proto compiles the protocol's .proto file and runs the two generators on it,
// at the versions of the project's go.mod: `make proto`.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	sources = "serve/proto"
	file    = "cotenant/balance/v1/balance.proto"
)

var generators = []struct{ program, parameters string }{
	{"google.golang.org/protobuf/cmd/protoc-gen-go", "paths=source_relative"},
	// An empty suffix keeps client and handler in the messages' package; simple
	// is methods that take and return messages.
	{"connectrpc.com/connect/cmd/protoc-gen-connect-go", "paths=source_relative,package_suffix,simple"},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "proto:", err)
		os.Exit(1)
	}
}

func run() error {
	// As `go run -C .ci/proto .` begins here.
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		return err
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{sources}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), file)
	if err != nil {
		return err
	}
	var all []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		all = append(all, protoutil.ProtoFromFileDescriptor(f))
	}
	add(files[0])
	for _, g := range generators {
		if err := generate(g.program, &pluginpb.CodeGeneratorRequest{
			FileToGenerate: []string{file}, Parameter: proto.String(g.parameters), ProtoFile: all,
		}); err != nil {
			return fmt.Errorf("%s: %w", g.program, err)
		}
	}
	return nil
}

func generate(program string, request *pluginpb.CodeGeneratorRequest) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "run", program)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, f := range response.File {
		if err := os.WriteFile(filepath.Join(sources, filepath.FromSlash(f.GetName())), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
