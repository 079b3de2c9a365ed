package sqlite_test

import (
	"testing"

	"github.com/amends-dev/amends/internal/storetest"
)

// SQLite answers what memory answers, whatever is called in whichever order.
func TestDiffer(t *testing.T) {
	t.Parallel()
	storetest.Differ(t, harness())
}
