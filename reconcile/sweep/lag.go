package sweep

import (
	"encoding/binary"

	"github.com/amends-dev/amends/reconcile"
)

// rounds reads a listing whose pages move again and again, until two readings in a row agree (I6).
type rounds struct {
	N      int    `json:"n,omitempty"`
	Sum    uint64 `json:"sum,omitempty"`    // over what was listed in this round, in whatever order
	Before uint64 `json:"before,omitempty"` // over the round before
}

// maxRounds is how often a listing is read until it is given up.
const maxRounds = 6

func (r *rounds) add(o *Object) { r.sum(o.ID, stamp(o.Changed), o.Version.Revision()) }

func (r *rounds) sum(parts ...string) {
	d := reconcile.DigestOf(parts...)
	r.Sum += binary.BigEndian.Uint64(d[:8])
}

// turn ends a round. It reports whether it agreed with the one before, and whether there have been enough.
func (r *rounds) turn() (agreed, enough bool) {
	r.N++
	agreed, enough = r.N > 1 && r.Sum == r.Before, r.N >= maxRounds
	r.Before, r.Sum = r.Sum, 0
	return agreed, enough
}

// again begins the round under way anew.
func (r *rounds) again() { r.Sum = 0 }

// digestOf tells pages apart.
func digestOf(objects []Object) reconcile.Digest {
	parts := make([]string, 0, 2*len(objects))
	for i := range objects {
		parts = append(parts, objects[i].ID, stamp(objects[i].Changed))
	}
	return reconcile.DigestOf(parts...)
}
