package coordinator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/store/memory"
)

// part is one that runs beside a coordinator.
type part func(ctx context.Context) error

func (p part) Run(ctx context.Context) error { return p(ctx) }

// What runs beside a coordinator ends with it, and it with them: by the end of the context, by the
// error of one, and when one ends that should have gone on.
func TestRunBesideOthers(t *testing.T) {
	t.Parallel()
	errBroken, errLate := errors.New("it is broken"), errors.New("it was interrupted")
	goesOn := part(func(ctx context.Context) error { <-ctx.Done(); return nil })
	complains := part(func(ctx context.Context) error { <-ctx.Done(); return errLate })
	for name, tc := range map[string]struct {
		others []coordinator.Part
		stop   bool
		want   []string // in the error; empty: there is none
	}{
		"nothing beside it":        {nil, true, nil},
		"all go on until the end":  {[]coordinator.Part{goesOn, goesOn}, true, nil},
		"one fails":                {[]coordinator.Part{goesOn, part(func(context.Context) error { return errBroken }), complains}, false, []string{"it is broken", "it was interrupted"}},
		"one ends by itself":       {[]coordinator.Part{part(func(context.Context) error { return nil }), goesOn}, false, []string{"part", "has ended by itself"}},
		"one complains at the end": {[]coordinator.Part{complains}, true, []string{"it was interrupted"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, err := coordinator.New(memory.New(nil), nil)
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				ended := make(chan error, 1)
				go func() { ended <- c.Run(ctx, tc.others...) }()
				synctest.Wait()
				if tc.stop {
					stop()
				}
				err = <-ended
				if (err == nil) != (len(tc.want) == 0) {
					t.Fatalf("it ended with %v", err)
				}
				for _, want := range tc.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("it ended with %v; want %q", err, want)
					}
				}
			})
		})
	}
}
