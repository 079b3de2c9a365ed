package program_test

import (
	"testing"

	"github.com/amends-dev/amends/internal/program"
)

// A work is named as a work in a command to copy, whatever it is called.
func TestCommand(t *testing.T) {
	t.Parallel()
	for work, want := range map[string]string{
		"shop:order:7": "amends show shop:order:7 --saga s",
		"order 7":      "amends show 'order 7' --saga s",
		"a;rm -rf ~":   "amends show 'a;rm -rf ~' --saga s",
		"--time=iso":   "amends show --saga s -- '--time=iso'",
		"-h":           "amends show --saga s -- '-h'",
		"--":           "amends show --saga s -- '--'",
		"-":            "amends show --saga s -- '-'",
		"--it's":       `amends show --saga s -- '--it'\''s'`,
	} {
		if got := program.Command("show", work, " --saga s"); got != want {
			t.Errorf("%q: %s, want %s", work, got, want)
		}
	}
}
