package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
)

// --seen: of those who say something to a work that they saw in one state, one is followed, at the same
// moment and one behind the other, whether a coordinator reads it or not; the others are told, and
// nothing of theirs is stored.
func TestSeen(t *testing.T) {
	t.Parallel()
	d := newCounter(t)
	program, err := invoicing(1)
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 6
	d.while(func(ctx context.Context, c *coordinator.Coordinator) error {
		for i := range rounds {
			work := fmt.Sprint("w", i)
			if _, err := c.Start(ctx, "order-to-invoice", work, shopOrder{Number: 3}, nil); err != nil {
				return err
			}
			if err := at(ctx, c, "order-to-invoice", work, saga.Review); err != nil {
				return err
			}
		}
		return nil
	}, program)
	say := [][]string{
		{"resolve", "--step", "receipt", "--did-not-happen"}, {"resolve", "--step", "receipt", "--happened", "mail_1"}, {"skip"}, {"cancel"},
	}
	for i := range rounds {
		work := fmt.Sprint("w", i)
		var shown struct{ Seq int64 }
		_, text := says(t, d.env, "", "show", work, "-o", "json")
		if err := json.Unmarshal([]byte(text), &shown); err != nil {
			t.Fatal(err)
		}
		ends := make([]exit, len(say))
		var all sync.WaitGroup
		for k, words := range say {
			line := append([]string{words[0], work}, words[1:]...)
			line = append(line, "--seen", strconv.FormatInt(shown.Seq, 10), "--reason", "r", "--actor", fmt.Sprint("person", k))
			speak := func() { ends[k], _ = says(t, d.env, "", line...) }
			if i%2 == 0 {
				all.Go(speak)
			} else {
				speak()
			}
		}
		all.Wait()
		stored := 0
		for k, end := range ends {
			if end == exitDone {
				stored++
			} else if end != exitConflict {
				t.Errorf("%s of %s ends with %d", say[k][0], work, end)
			}
		}
		signals, err := d.l.Signals(t.Context(), saga.ID{Saga: "order-to-invoice", Work: work})
		if err != nil || stored != 1 || len(signals) != 1 {
			t.Errorf("%v: %d of %s were told that they are stored, and %d are", err, stored, work, len(signals))
		}
		if _, told := says(t, d.env, "", "cancel", work, "--seen", "1", "--reason", "r"); !strings.Contains(told, "it is not what you saw any more") {
			t.Errorf("one who saw an older record is told %s", told)
		}
	}
}
