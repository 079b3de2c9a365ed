package cost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of processor time in /proc; Linux has shown user space 100
// ticks a second on every architecture Go supports.
const tick = 10 * time.Millisecond

// selfCPU is the processor time of this process, user and system.
func selfCPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// PeakMemory is the most memory this process has had resident, in bytes.
// It reads /proc because the figure of getrusage survives exec: a child would
// report the peak of its parent.
func PeakMemory() (int64, error) {
	kB, err := procField("/proc/self/status", "VmHWM")
	return kB * 1024, err
}

// ResetPeakMemory makes [PeakMemory] speak of what comes from now on. Memory that this process does
// not need any more goes back to the system first.
func ResetPeakMemory() error {
	debug.FreeOSMemory()
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// process meters this process alone.
type process struct{}

// Process returns the meter of an engine without a database.
func Process() Meter { return process{} }

func (process) Read(context.Context) (r Reading, err error) {
	r.EngineCPU, err = selfCPU()
	return r, err
}

func (process) Close() error { return nil }

// written is the number of bytes this process has handed to write calls.
func written() (int64, error) { return procField("/proc/self/io", "wchar") }

// procField reads the number after "name:" in a file of /proc.
func procField(path, name string) (int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no line %q", path, name)
}

// familyCPU is the processor time of a process, of the children it has reaped
// and of those alive.
func familyCPU(pid int) (time.Duration, error) {
	own, reaped, err := procCPU(pid)
	if err != nil {
		return 0, err
	}
	total := own + reaped
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, err
	}
	for child := range strings.FieldsSeq(string(children)) {
		id, err := strconv.Atoi(child)
		if err != nil {
			return 0, err
		}
		own, _, err := procCPU(id)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // ended meanwhile; its parent's next reading has it
		}
		if err != nil {
			return 0, err
		}
		total += own
	}
	return total, nil
}

// procCPU reads a process's own processor time and that of its reaped children.
func procCPU(pid int) (own, reaped time.Duration, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The name in parentheses may hold anything; fields count from behind it,
	// where the state is the third of the line.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	var ticks [4]int64
	for i := range ticks {
		if ticks[i], err = strconv.ParseInt(fields[11+i], 10, 64); err != nil {
			return 0, 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
	}
	return time.Duration(ticks[0]+ticks[1]) * tick, time.Duration(ticks[2]+ticks[3]) * tick, nil
}
