package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/amends-dev/amends/internal/pace"
)

// Ctrl-C ends everything: the exit status is 1, a word says where things are, and no process is
// left behind.
func TestInterruptEndsEverything(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	endsWithItsProcesses(t, syscall.SIGINT, func(status int, stderr string) {
		if status != 1 || !strings.Contains(stderr, "interrupted. Every process was stopped") || !strings.Contains(stderr, "/amends-") {
			t.Errorf("exit status %d\n%s", status, stderr)
		}
	})
}

// When the program itself is killed, the processes it started see it and end: none goes on alone.
func TestNoProcessOutlivesTheProgram(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	endsWithItsProcesses(t, syscall.SIGKILL, func(int, string) {})
}

// endsWithItsProcesses ends a run in its midst and waits until its processes have ended as well.
func endsWithItsProcesses(t *testing.T, by syscall.Signal, check func(status int, stderr string)) {
	t.Helper()
	cmd := command(t, "-orders", "500", "-kills", "0", "-faults", "0.5")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var children []int
	eventually(t, "both syncs run", func() bool {
		children = childrenOf(cmd.Process.Pid)
		return len(children) == 2
	})
	if err := cmd.Process.Signal(by); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was told to fail
	check(cmd.ProcessState.ExitCode(), stderr.String())
	for _, pid := range children {
		eventually(t, fmt.Sprintf("process %d ends", pid), func() bool { return !alive(pid) })
	}
}

// childrenOf returns the processes that pid started and that still run.
func childrenOf(pid int) []int {
	var found []int
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range all {
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && alive(child) && stat(child)[1] == strconv.Itoa(pid) {
			found = append(found, child)
		}
	}
	return found
}

// alive reports whether a process runs; one that has ended and was not waited for does not.
func alive(pid int) bool {
	s := stat(pid)
	return s[0] != "" && s[0] != "Z" && s[0] != "X"
}

// stat returns a process' state and the process that started it, or nothing when it is gone.
func stat(pid int) [2]string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return [2]string{}
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the name before may hold anything
	return [2]string{fields[0], fields[1]}
}
