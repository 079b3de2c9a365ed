package reconcile_test

import (
	"io"
	"testing"

	"github.com/sirupsen/logrus"
)

// What is not under test logs to no reader.
func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard)
	m.Run()
}
