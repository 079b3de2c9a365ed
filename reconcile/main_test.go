package reconcile_test

import (
	"flag"
	"io"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/pace"
)

// What is not under test logs to no reader.
func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard)
	if !pace.AtNight() {
		_ = flag.Set("rapid.checks", "30") // a history is a day of a world, in half a second; rapid has registered it
	}
	m.Run()
}
