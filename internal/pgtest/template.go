package pgtest

import (
	"context"
	"os"
	"strings"
	"sync"
)

// Template is a database that many tests begin with: it is prepared once, each test gets a copy of it, and
// it is dropped with the last test that uses it.
type Template struct {
	// Prepare fills the database at address, and leaves no connection to it open.
	Prepare func(ctx context.Context, address string) error

	// Name is by what other processes know it, see [Template.Lend].
	Name string

	mu       sync.Mutex // guards what follows
	users    int
	database string
	drop     func(context.Context) error
}

// URL returns the URL of a copy, and drops it when the test and its subtests end. Without a PostgreSQL it
// does as [URL] does.
func (m *Template) URL(tb TB) string {
	tb.Helper()
	server, template := m.use(tb)
	address, drop, err := fromTemplate(context.Background(), server, template)
	return lent(tb, address, drop, err)
}

// Lend has the processes that this one starts during a test copy the same: there the template is not
// prepared again.
func (m *Template) Lend(tb TB) {
	tb.Helper()
	server, template := m.use(tb)
	for name, value := range map[string]string{Env: server, m.variable(): template} {
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

// variable names the environment variable that tells a process which database was prepared by the one that
// started it.
func (m *Template) variable() string { return "AMENDS_TEST_TEMPLATE_" + m.Name }

// use is the template for as long as a test runs.
func (m *Template) use(tb TB) (server, template string) {
	tb.Helper()
	skipShort(tb)
	server, err := sharedServer()
	if err != nil {
		unavailable(tb, err)
	}
	if lent := os.Getenv(m.variable()); lent != "" && m.Name != "" {
		return server, lent
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users == 0 {
		if err := m.prepare(context.Background(), server); err != nil {
			tb.Fatalf("%v", err)
		}
	}
	m.users++
	tb.Cleanup(func() {
		tb.Helper()
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.users--; m.users > 0 {
			return
		}
		if err := m.drop(context.Background()); err != nil {
			tb.Errorf("%v", err)
		}
	})
	return server, m.database
}

func (m *Template) prepare(ctx context.Context, server string) (err error) {
	var address string
	if address, m.drop, err = Database(ctx, server); err != nil {
		return err
	}
	if err := m.Prepare(ctx, address); err != nil {
		_ = m.drop(ctx)
		return err
	}
	parsed, err := parse(address)
	m.database = strings.TrimPrefix(parsed.Path, "/")
	return err
}
