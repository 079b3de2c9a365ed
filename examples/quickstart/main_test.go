package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The README shows this program, and what it prints: word for word.
func TestReadmeShowsTheQuickStart(t *testing.T) {
	t.Parallel()
	readme := read(t, "../../README.md")
	program := read(t, "main.go")
	shown := program[strings.Index(program, "package main"):]
	if !strings.Contains(readme, "```go\n"+shown+"```\n") {
		t.Error("the quick start in README.md is not examples/quickstart/main.go from its package clause on")
	}
	for _, line := range strings.SplitAfter(said(t), "\n") {
		if !strings.Contains(readme, line) {
			t.Errorf("README.md does not show that the quick start prints %q", line)
		}
	}
}

// A second run starts the same trip again: nothing is booked twice, and the first result comes
// back.
func TestSecondRunBooksNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := build(t, dir)
	first, second := start(t, program, dir), start(t, program, dir)
	if n := strings.Count(first+second, "booked"); n != 1 {
		t.Errorf("the train was booked %d times:\n%s%s", n, first, second)
	}
	if last := lastLine(first); lastLine(second) != last {
		t.Errorf("the second run says %q, the first %q", lastLine(second), last)
	}
}

func said(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	return start(t, build(t, dir), dir)
}

func build(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(dir, "quickstart")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// start runs the program and returns what it prints to standard output.
func start(t *testing.T, program, dir string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	var out, log bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	return out.String()
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
