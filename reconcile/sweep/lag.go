package sweep

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"time"

	"github.com/amends-dev/amends/reconcile"
)

// histogram counts how late objects were shown, in powers of two of a second. The first bucket counts what was not late.
type histogram []int64

// forget is how many samples are remembered in full; then all of them count half, so that what was long ago fades.
const forget = 20_000

func (h *histogram) add(lag time.Duration) {
	n := 0
	if lag > 0 {
		n = 1 + bits.Len64(uint64((lag-1)/time.Second)) // bucket n holds what is at most 2^(n-1) seconds
	}
	for len(*h) <= n {
		*h = append(*h, 0)
	}
	(*h)[n]++
	if h.samples() >= forget {
		for i := range *h {
			(*h)[i] /= 2
		}
	}
}

func (h *histogram) samples() (sum int64) {
	for _, n := range *h {
		sum += n
	}
	return sum
}

// most is the lag that 999 of 1,000 objects did not exceed: I11.
func (h *histogram) most() time.Duration {
	over := h.samples() / 1000
	for n := len(*h) - 1; n > 0; n-- {
		if over -= (*h)[n]; over < 0 {
			return time.Second << (n - 1)
		}
	}
	return 0
}

// recent remembers states of objects near the edge of a pass, as many as keepRecent: eight bytes each, four of the
// time and four of a hash, the oldest first.
type recent struct {
	Seen []byte    `json:"seen,omitempty"`
	From time.Time `json:"from,omitzero"` // what is older may have been forgotten
}

const (
	keepRecent = 2048
	recentSize = 8
)

// hashOf tells states of objects apart, well enough for a measurement.
func hashOf(o *Object) [recentSize]byte {
	d := reconcile.DigestOf(o.ID, stamp(o.Changed))
	var h [recentSize]byte
	binary.BigEndian.PutUint32(h[:4], uint32(max(0, o.Changed.Unix())))
	copy(h[4:], d[:4])
	return h
}

func (r *recent) at(i int) []byte { return r.Seen[i*recentSize : (i+1)*recentSize] }

func (r *recent) find(hash [recentSize]byte) (int, bool) {
	low, high := 0, len(r.Seen)/recentSize
	for low < high {
		mid := (low + high) / 2
		switch c := slices.Compare(r.at(mid), hash[:]); {
		case c == 0:
			return mid, true
		case c < 0:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low, false
}

func (r *recent) has(hash [recentSize]byte) bool {
	_, ok := r.find(hash)
	return ok
}

// knows reports whether states of that time are remembered.
func (r *recent) knows(changed time.Time) bool { return !changed.Before(r.From) }

func (r *recent) add(changed time.Time, hash [recentSize]byte) {
	i, ok := r.find(hash)
	if ok || !r.knows(changed) {
		return
	}
	r.Seen = slices.Insert(r.Seen, i*recentSize, hash[:]...)
	if len(r.Seen) > keepRecent*recentSize {
		oldest := time.Unix(int64(binary.BigEndian.Uint32(r.Seen)), 0).UTC()
		r.From = later(r.From, oldest.Add(time.Second))
		r.Seen = slices.Delete(r.Seen, 0, recentSize)
	}
}

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
