package cost

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// SyncLatency is the median time a small write and its fdatasync take in dir.
// A figure of a few microseconds means that the disk there keeps no promise.
func SyncLatency(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "sync-*")
	if err != nil {
		return 0, fmt.Errorf("probe the disk: %w", err)
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	page := make([]byte, 8192)
	took := make([]time.Duration, 101)
	for i := range took {
		start := time.Now()
		if _, err := f.WriteAt(page, 0); err != nil {
			return 0, fmt.Errorf("probe the disk: %w", err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, fmt.Errorf("probe the disk: %w", err)
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
