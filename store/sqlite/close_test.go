package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
)

// What a closed ledger holds is in its file: copying that file alone copies the ledger.
func TestCloseLeavesOneFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, err := Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := l.OpenSession(t.Context(), time.Minute, "copied", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, beside := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + beside); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there after Close (%v)", beside, err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(copied, b, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), copied, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Renew(t.Context(), lease.Token, ledger.Renewal{TTL: time.Minute}); err != nil {
		t.Errorf("the copy does not know the session: %v", err)
	}
}
