package hooks_test

import (
	"fmt"
	"testing"

	"github.com/amends-dev/amends/internal/shopsim/hooks"
)

// The fate of a webhook depends on the seed and its id. The shares are what
// they say, a zero plan leaves every webhook alone, and all that can happen does.
func TestFates(t *testing.T) {
	t.Parallel()
	p := hooks.Plan{Seed: 1, Drops: 0.2, Duplicates: 0.5, Forgeries: 0.1}
	copies, drops, forged := map[int]int{}, map[int]int{}, map[hooks.Forgery]int{}
	differ := 0
	for n := range 4000 {
		id := fmt.Sprint("msg_", n)
		f := p.For(id)
		copies[f.Copies]++
		drops[f.Dropped]++
		forged[f.Forgery]++
		if f != p.For(id) {
			t.Fatalf("%s has two fates", id)
		}
		if f != (hooks.Plan{Seed: 2, Drops: 0.2, Duplicates: 0.5, Forgeries: 0.1}).For(id) {
			differ++
		}
		if f := (hooks.Plan{Seed: 1}).For(id); f != (hooks.Fate{}) {
			t.Fatalf("%s: %+v without a plan", id, f)
		}
	}
	near := func(got, want int) bool { return got > want*8/10 && got < want*12/10 }
	if !near(4000-copies[0], 2000) || len(copies) != hooks.MaxCopies+1 {
		t.Errorf("copies: %v", copies)
	}
	if !near(4000-drops[0], 800) || len(drops) != hooks.MaxDropped+1 {
		t.Errorf("dropped: %v", drops)
	}
	if !near(4000-forged[hooks.Genuine], 400) || len(forged) != 4 {
		t.Errorf("forged: %v", forged)
	}
	if differ < 2000 {
		t.Errorf("two seeds differ in %d of 4000 fates", differ)
	}
}
