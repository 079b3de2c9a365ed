package coordinator_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain finds goroutines that outlive the tests.
func TestMain(m *testing.M) {
	if where := os.Getenv(workerEnv); where != "" {
		os.Exit(work(where))
	}
	if where := os.Getenv(steadyEnv); where != "" {
		os.Exit(steady(where))
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			os.Stderr.WriteString("goroutines outlive the tests:\n" + err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}
