package hostlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Process is the file that this process keeps locked, from the first Hold on.
type Process struct {
	Dir string

	mu   sync.Mutex
	lock *Lock
	err  error // why there is none
}

// Dir is where processes keep their files unless they are told otherwise.
func Dir() string { return filepath.Join(os.TempDir(), fmt.Sprintf("amends-%d", os.Getuid())) }

// Hold makes the file and locks it, unless it is there.
func (p *Process) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lock == nil {
		if p.lock, p.err = Hold(p.Dir); p.err != nil {
			p.lock = nil
		}
	}
}

// Name is what goes on record, and what [Gone] takes; "" when there is no lock.
func (p *Process) Name() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lock == nil {
		return ""
	}
	return p.lock.Name()
}

// Path is where the file is, or why there is none.
func (p *Process) Path() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lock == nil {
		return "", p.err
	}
	return p.lock.Path(), nil
}

// Release gives the lock back.
func (p *Process) Release() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lock == nil {
		return nil
	}
	err := p.lock.Release()
	p.lock, p.err = nil, errors.New("the database was closed")
	return err
}

// Die ends as a process does that is killed: its file stays. It is for tests.
func (p *Process) Die() error { return p.lock.Close() }
