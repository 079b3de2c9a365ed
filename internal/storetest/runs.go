package storetest

import (
	"fmt"
	"strings"

	"github.com/amends-dev/amends/reconcile/schedule"
)

// numbers are the names of runs.
func numbers(rs []schedule.RunRow) string {
	names := make([]string, len(rs))
	for i := range rs {
		names[i] = fmt.Sprintf("%s%d", rs[i].Job, rs[i].Number)
	}
	return strings.Join(names, " ")
}
