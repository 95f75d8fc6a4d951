package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/sim/compare"
)

// readmeCommands are the lines of the README's shell blocks, comments off and
// continued lines joined.
func readmeCommands(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
			line, _, _ = strings.Cut(line, "  #")
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// filesOf are the files that a command reads, and those that it writes.
func filesOf(args []string) (reads, writes []string) {
	flags := map[string]string{}
	for i, a := range args {
		if name, ok := strings.CutPrefix(a, "--"); ok && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			flags[name] = args[i+1]
		}
	}
	for _, name := range []string{"samples", "batch", "cluster", "constraints", "throughputs", "jobs", "trace", "workloads"} {
		file, _, _ := strings.Cut(flags[name], ":")
		if filepath.Ext(file) != "" {
			reads = append(reads, file)
		}
	}
	if file := flags["model"]; filepath.Ext(file) != "" {
		reads = append(reads, file)
	}
	for _, p := range splitPolicies(flags["policy"]) {
		if command, ok := strings.CutPrefix(p, execPrefix); ok {
			reads = append(reads, strings.Fields(command)[1])
		} else if _, file, ok := strings.Cut(p, "@"); ok {
			reads = append(reads, file)
		}
	}
	for _, name := range []string{"out", "report"} {
		if flags[name] != "" {
			writes = append(writes, flags[name])
		}
	}
	return reads, writes
}

// Every command of the README is one that a newcomer can run from a fresh
// clone: its flags are known, its policies too, and each file that it reads
// ships or was written by a command before it. Those that take seconds are
// run.
func TestTheCommandsOfTheReadmeRun(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the README's commands are run without the race detector")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	lines := readmeCommands(t)
	t.Chdir(t.TempDir())
	for _, dir := range []string{"data", "examples"} {
		if err := os.Symlink(filepath.Join(root, dir), dir); err != nil {
			t.Fatal(err)
		}
	}
	var made []string
	commands, ran := 0, 0
	for _, line := range lines {
		if _, file, ok := strings.Cut(line, " > "); ok && !strings.HasPrefix(line, "cotenant ") {
			made = append(made, file)
			continue
		}
		// As kubectl's plugin the program needs a cluster: what it is given is looked at.
		if after, ok := strings.CutPrefix(line, "kubectl cotenant "); ok {
			line = "cotenant " + after
		}
		words, ok := splitWords(line)
		if ok && words[0] == "kubectl" {
			for i, w := range words[:len(words)-1] {
				if _, err := os.Stat(words[i+1]); w == "-f" && err != nil {
					t.Errorf("%q: %v", line, err)
				}
			}
			continue
		}
		if !ok || words[0] != "cotenant" {
			if words[0] != "make" {
				t.Errorf("%q: what is this? the README runs cotenant, kubectl and make, and writes files", line)
			}
			continue
		}
		commands++
		args := words[1:]
		reads, writes := filesOf(args)
		if args[0] == "profile" && slices.Contains(args, "--verify") {
			reads, writes = writes, nil
		}
		real := true
		for _, file := range reads {
			_, err := os.Stat(file)
			real = real && err == nil
			if err != nil && !slices.Contains(made, file) {
				t.Errorf("%q reads %s, which neither ships nor was made before", line, file)
			}
		}
		for _, file := range writes {
			if slices.Contains(made, file) {
				t.Errorf("%q writes %s, as a command before it does", line, file)
			}
		}
		made = append(made, writes...)
		if args[0] == "plan" && real && !strings.Contains(line, execPrefix) {
			ran++
			if out, errs, code := cotenant(t, args...); code != 0 || out == "" {
				t.Errorf("%q: exit %d: %s", line, code, errs)
			}
			continue
		}
		checkParsed(t, line, args)
	}
	if commands < 15 || ran < 4 {
		t.Errorf("%d commands, of which %d ran; want 15 and 4 or more", commands, ran)
	}
}

// checkParsed wants a command whose flags and policies are known.
func checkParsed(t *testing.T, line string, args []string) {
	t.Helper()
	root := newRoot()
	var cmd *cobra.Command
	cmd, rest, err := root.Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil || cmd.HasSubCommands() && cmd.Name() != "profile" {
		t.Errorf("%q: %v, arguments %q", line, err, cmd.Flags().Args())
		return
	}
	policy := cmd.Flags().Lookup("policy")
	if policy == nil || policy.Value.String() == "[]" {
		return
	}
	known := policyNames()
	if strings.Contains(cmd.CommandPath(), "jobs") {
		known = compare.Names()
	}
	for _, part := range splitPolicies(strings.Trim(policy.Value.String(), "[]\"")) {
		name, _, _ := strings.Cut(part, ":")
		name, _, _ = strings.Cut(name, "@")
		if name != "exec" && !slices.Contains(known, name) {
			t.Errorf("%q: no policy %s", line, name)
		}
	}
}
