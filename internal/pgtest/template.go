package pgtest

import (
	"context"
	"strings"
	"sync"
)

// Template is a database that many tests begin with: it is prepared once, and each test gets a copy of its own, which
// costs no more than an empty one. It is dropped with the last test that uses it.
type Template struct {
	// Prepare fills the database at address, and leaves no connection to it open.
	Prepare func(ctx context.Context, address string) error

	mu      sync.Mutex // guards what follows
	users   int
	address string
	drop    func(context.Context) error
}

// URL returns the URL of a new copy and drops it when the test and its subtests end, as [URL] does.
func (m *Template) URL(tb TB) string {
	tb.Helper()
	server, err := sharedServer()
	if err != nil {
		unavailable(tb, err)
	}
	name, err := m.join(server)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		tb.Helper()
		if err := m.leave(); err != nil {
			tb.Errorf("%v", err)
		}
	})
	address, drop, err := fromTemplate(context.Background(), server, name)
	return lent(tb, address, drop, err)
}

// join returns the name of the prepared database. Who joins also leaves.
func (m *Template) join(server string) (name string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users == 0 {
		if m.address, m.drop, err = Database(context.Background(), server); err != nil {
			return "", err
		}
		if err := m.Prepare(context.Background(), m.address); err != nil {
			_ = m.drop(context.Background())
			return "", err
		}
	}
	u, err := parse(m.address)
	if err != nil {
		return "", err
	}
	m.users++
	return strings.TrimPrefix(u.Path, "/"), nil
}

func (m *Template) leave() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users--; m.users > 0 {
		return nil
	}
	return m.drop(context.Background())
}
