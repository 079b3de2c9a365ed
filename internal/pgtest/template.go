package pgtest

import (
	"context"
	"os"
	"sync"
)

// Template is a database that many tests begin with: it is prepared once, and each test gets a copy
// for itself alone. A copy that was emptied again, and in which nothing else was changed, is the
// next test's. All are dropped with the last test that uses them.
type Template struct {
	// Prepare fills the database at address, and leaves no connection to it open. It leaves rows
	// only in tables to which few tests write.
	Prepare func(ctx context.Context, address string) error

	// Name is by what other processes know it, see [Template.Lend].
	Name string

	mu     sync.Mutex // guards what follows
	users  int
	copies *copies
}

// URL returns the URL of a copy that is as new, and takes it back when the test and its subtests
// end, with what is still connected. Without a PostgreSQL it does as [URL] does.
func (m *Template) URL(tb TB) string {
	tb.Helper()
	c := m.use(tb)
	address, err := c.take(context.Background())
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		tb.Helper()
		if err := c.giveBack(context.Background(), address); err != nil {
			tb.Errorf("%v", err)
		}
	})
	return address
}

// Lend has the processes that this one starts during a test use its copies: there the template is
// not prepared again.
func (m *Template) Lend(tb TB) {
	tb.Helper()
	c := m.use(tb)
	for name, value := range map[string]string{Env: c.server, m.variable(): c.template} {
		was, set := os.LookupEnv(name)
		if err := os.Setenv(name, value); err != nil {
			tb.Fatalf("%v", err)
		}
		tb.Cleanup(func() {
			_ = os.Unsetenv(name)
			if set {
				_ = os.Setenv(name, was)
			}
		})
	}
}

// variable names the environment variable that tells a process which database was prepared by the
// one that started it.
func (m *Template) variable() string { return "AMENDS_TEST_TEMPLATE_" + m.Name }

// use is the template for as long as a test runs.
func (m *Template) use(tb TB) *copies {
	tb.Helper()
	skipShort(tb)
	server, err := sharedServer()
	if err != nil {
		unavailable(tb, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users == 0 {
		if m.copies, err = m.prepared(context.Background(), server); err != nil {
			tb.Fatalf("%v", err)
		}
	}
	m.users++
	tb.Cleanup(func() {
		tb.Helper()
		if err := m.leave(); err != nil {
			tb.Errorf("%v", err)
		}
	})
	return m.copies
}

// prepared prepares the template, or finds the one that was lent to this process.
func (m *Template) prepared(ctx context.Context, server string) (_ *copies, err error) {
	if template := os.Getenv(m.variable()); template != "" {
		return copiesOf(ctx, server, template)
	}
	address, drop, err := Database(ctx, server)
	if err != nil {
		return nil, err
	}
	if err := m.Prepare(ctx, address); err != nil {
		_ = drop(ctx)
		return nil, err
	}
	template, err := databaseOf(address)
	if err != nil {
		return nil, err
	}
	c, err := copiesOf(ctx, server, template)
	if err != nil {
		_ = drop(ctx)
		return nil, err
	}
	c.dropTemplate = drop
	return c, nil
}

func (m *Template) leave() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users--; m.users > 0 {
		return nil
	}
	return m.copies.close(context.Background())
}
