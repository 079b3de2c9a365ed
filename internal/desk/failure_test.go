package desk

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/lib/pq"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
)

// Every error of the layers below has its code, however deep it is wrapped.
func TestFailureOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  error
		want Code
	}{
		{ledger.ErrNotFound, NotFound},
		{coordinator.ErrNotInReview, Conflict},
		{coordinator.ErrOtherStep, Conflict},
		{coordinator.ErrFinished, Conflict},
		{coordinator.ErrAtRest, Conflict},
		{coordinator.ErrNotPaused, Conflict},
		{coordinator.ErrUnderWay, Conflict},
		{coordinator.ErrNotWaiting, Conflict},
		{coordinator.ErrNotAsking, Conflict},
		{coordinator.ErrDeclined, Conflict},
		{coordinator.ErrNotOpen, Conflict},
		{coordinator.ErrOtherShown, Conflict},
		{coordinator.ErrNoVote, Conflict},
		{coordinator.ErrVoted, Conflict},
		{coordinator.ErrOtherMessage, Conflict},
		{coordinator.ErrChangesNothing, Conflict},
		{coordinator.ErrInDoubt, Conflict},
		{coordinator.ErrNotEnded, Conflict},
		{coordinator.ErrWithdrawn, Conflict},
		{ledger.ErrLocked, Conflict},
		{ledger.ErrReadOnly, NotAllowed},
		{fs.ErrPermission, NotAllowed},
		{&pq.Error{Code: "28P01"}, NotAllowed},
		{&pq.Error{Code: "42501"}, NotAllowed},
		{&pq.Error{Code: "42P01"}, Failed},
		{ledger.ErrSchema, Failed},
		{ledger.ErrUnsupported, Failed},
		{errors.New("anything else"), Failed},
		{Usage("", "x"), Misuse},
	} {
		if got := FailureOf(t.Context(), fmt.Errorf("show: %w", tc.err)); got.Code != tc.want {
			t.Errorf("%v is %s, want %s", tc.err, got.Code, tc.want)
		}
	}
}

// What to try is the id without its last part.
func TestStem(t *testing.T) {
	t.Parallel()
	for work, want := range map[string]string{
		"shop:order:99": "shop:order:", "a/b": "a/", "order99": "orde", "x": "x", "shop:": "sho", "größe": "grö",
	} {
		if got := stem(work); got != want {
			t.Errorf("stem(%q) = %q, want %q", work, got, want)
		}
	}
}

// A work that is not named is none: a filter that says nothing finds every one.
func TestNothingSaidFindsNothing(t *testing.T) {
	t.Parallel()
	if _, err := (&Desk{}).find(t.Context(), &Which{Saga: "mail"}); FailureOf(t.Context(), err).Code != Misuse {
		t.Errorf("it is answered with %v", err)
	}
}
