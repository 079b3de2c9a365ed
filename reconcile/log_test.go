package reconcile_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sirupsen/logrus"
)

// A run is told in a line for the plan and one for what was done; what failed in one each. Bodies
// are not.
func TestLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(4)
		w.deliverFails[keyOf(1)] = errors.New("422 unknown tax")
		for n := range 4 {
			w.orders[keyOf(n)].Total = "4711.00" // as if it were about a person
		}
		var text bytes.Buffer
		log := logrus.New()
		log.SetOutput(&text)
		log.SetLevel(logrus.InfoLevel)
		w.job(t, func(c *settings) { c.Log = log }).mustRun()
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[0], "planned=4") || !strings.Contains(lines[1], keyOf(1)) || !strings.Contains(lines[1], "422 unknown tax") || !strings.Contains(lines[2], "applied=3") {
			t.Errorf("the log:\n%s", text.String())
		}
		if strings.Contains(text.String(), "4711") {
			t.Errorf("a body is in the log:\n%s", text.String())
		}
	})
}
