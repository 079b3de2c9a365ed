package sqlstore

import (
	"context"
	"testing"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/rows"
)

// A look whose answer was lost is done again, and is on record once: neither it nor a number comes twice, and
// the next one has the next number.
func TestALookThatIsRepeatedIsPutOnce(t *testing.T) {
	t.Parallel()
	db, times := onSQLite(t), 0
	once := func(ctx context.Context, fn func(context.Context, Queries) error) error {
		tx := db.MustBegin()
		defer func() { _ = tx.Rollback() }() // without effect after a commit
		if err := fn(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	}
	s := New(&Dialect{
		Words: map[string]string{"now": `$1`}, Clock: func() any { return int64(1) }, Moment: rows.Micros,
		Explain: func(_ context.Context, err error) error { return err }, View: once,
		Whole: func(ctx context.Context, fn func(context.Context, Queries) error) error {
			for range 2 { // the first answer is lost
				if times++; once(ctx, fn) != nil {
					t.Error("it was refused")
				}
			}
			return nil
		},
	}, false)
	t.Cleanup(func() { Settle(s) })
	for range 3 {
		if err := s.Did(t.Context(), ledger.DeedLooked, "bodies", saga.Actor{Name: "anna", Reason: "a complaint"}); err != nil {
			t.Fatal(err)
		}
	}
	acts, head, err := s.ActChain(t.Context(), 0, 0)
	if err != nil || times != 6 || len(acts) != 3 || acts[2].Number != 3 || head.Number != 3 {
		t.Errorf("%d acts with head %d, %v, want 3", len(acts), head.Number, err)
	}
}
