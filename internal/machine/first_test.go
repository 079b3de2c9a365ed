package machine

import (
	"testing"

	"github.com/amends-dev/amends/saga"
)

// machine/T1: what was there before is told to later steps: what is found, also when it was changed. It is not there any more once it was
// undone, nor is what was made after a lookup found nothing.
func TestT1WhatWasThere(t *testing.T) {
	const steps = "a find first update undo\nb idempotent no-undo"
	for name, c := range map[string]struct {
		d    *desk
		want bool
	}{
		"found":                           {begin(t, steps).found(KindFound, "old"), true},
		"changed":                         {begin(t, steps).found(KindOther, "old").succeed("old"), true},
		"changed, and asked about":        {begin(t, steps).found(KindOther, "old").fail(saga.Unknown).due().found(KindFound, "old"), true},
		"changed by what is repeated":     {begin(t, "a idempotent lookup first no-undo\nb idempotent no-undo").found(KindOther, "old").succeed("old"), true},
		"made":                            {begin(t, steps).found(KindNotFound).succeed("new"), false},
		"made, and asked about":           {begin(t, steps).found(KindNotFound).fail(saga.Unknown).due().found(KindFound, "new"), false},
		"finished":                        {begin(t, steps).found(KindUnfinished, "old").succeed("old"), false},
		"found, and changed since":        {begin(t, steps).found(KindFound, "old").succeed("").revise("2").succeed("old"), true},
		"found, and another made since":   {begin(t, steps).found(KindFound, "old").succeed("").revise("2").succeed("new"), false},
		"changed, undone, and made again": {begin(t, steps).found(KindOther, "old").succeed("old").fail(saga.Refused).succeed("").revise("2").found(KindNotFound).succeed("new"), false},
		"found, undone, and made again":   {begin(t, steps).found(KindFound, "old").fail(saga.Refused).succeed("").revise("2").found(KindNotFound).succeed("new"), false},
	} {
		if got := c.d.wants("act b forward", saga.Running).st.Step("a").wasThere(); got != c.want {
			t.Errorf("%s: it was there: %t", name, got)
		}
	}
}
