package cost

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
)

// changeCounter is where the header of the shared-memory file counts write
// transactions, in the byte order of the machine.
const changeCounter = 8

type sqlite struct {
	// shm stays open until Close. Closing any descriptor of the file makes the
	// kernel drop the locks SQLite holds on it in this process.
	shm *os.File
}

// OpenSQLite returns the meter of a database that this process has open in WAL
// mode. Open it after the engine and close it after the engine is closed.
func OpenSQLite(path string) (Meter, error) {
	shm, err := os.Open(path + "-shm")
	if err != nil {
		return nil, fmt.Errorf("open the meter (is the database in WAL mode?): %w", err)
	}
	return &sqlite{shm: shm}, nil
}

func (s *sqlite) Read(context.Context) (r Reading, err error) {
	if r.EngineCPU, err = selfCPU(); err != nil {
		return r, err
	}
	if r.LogBytes, err = written(); err != nil {
		return r, fmt.Errorf("bytes written: %w", err)
	}
	var b [4]byte
	if _, err := s.shm.ReadAt(b[:], changeCounter); err != nil {
		return r, fmt.Errorf("read the change counter: %w", err)
	}
	r.Commits = int64(binary.NativeEndian.Uint32(b[:]))
	return r, nil
}

func (s *sqlite) Close() error { return s.shm.Close() }
