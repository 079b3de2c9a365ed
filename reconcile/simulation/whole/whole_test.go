package whole

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/pace"
)

// sizes is how large the run is: small, unless AMENDS_SIMULATE=full. AMENDS_SEED chooses one seed.
func sizes(t *testing.T) (sz size, seeds []uint64) {
	t.Helper()
	sz, seeds = size{orders: 40, lives: 12}, []uint64{1}
	if pace.AtNight() {
		seeds = []uint64{1, 2}
	}
	if os.Getenv("AMENDS_SIMULATE") == "full" {
		sz, seeds = size{orders: 10_000, lives: 40}, []uint64{1}
	}
	if text := os.Getenv("AMENDS_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("AMENDS_SEED: %v", err)
		}
		seeds = []uint64{seed}
	}
	return sz, seeds
}

// ends is what a world came to: what the live invoices of each order say.
type ends map[string]string

func (s *scene) ends() ends {
	e := ends{}
	for _, o := range s.shop.orders {
		e[o.key] = fmt.Sprint(s.books.totals(o.key))
	}
	return e
}

// same compares what two worlds of one seed came to.
func (e ends) same(t *testing.T, s *scene, what string, other ends, of func(*order) bool) {
	t.Helper()
	var differ []string
	for _, o := range s.shop.orders {
		if of(o) && e[o.key] != other[o.key] {
			differ = append(differ, fmt.Sprintf("%s: %s, and with everything %s; the shop has %+v", o.key, e[o.key], other[o.key], o.states))
		}
	}
	broken(t, s, what, differ)
}

func every(*order) bool  { return true }
func told(o *order) bool { return o.told }

// left reports whether the shop still shows the order: of others nobody learns without a webhook.
func left(o *order) bool { return !o.last().deleted }

// The invariants of the design's section 7, after quiescence and one reconciliation:
//
//	I-1   one invoice per paid order, saying what it should
//	I-2   at no time more than one mail about an order, and one in the end unless a lost ledger knew better
//	I-3   the gate is as the source
//	I-4   versions never go down, at the gate and on an invoice
//	I-5   what is gone is not resurrected
//	I-6   a second reconciliation plans nothing
//	I-7   and a dry run writes nothing
//	I-8   a rebuilt ledger equals the one that was lost, on works that had ended
//	I-9   an empty source undoes nothing
//	I-10  hints alone, without payloads and sweeps, come to the same end
//	I-11  sweeps and reconciler alone, without a webhook, come to the same end
//
// I-12 (fetches under a storm of hints) is TestHintStorm of package simulation, and I-13 (what was
// acknowledged is there after a kill) TestSimulate there, in virtual time, and the process tests of
// package webhook and of the example, with real kills.
func TestInvariants(t *testing.T) {
	t.Parallel()
	sz, seeds := sizes(t)
	for i, k := range kinds {
		for _, seed := range seeds {
			t.Run(fmt.Sprintf("%s, seed %d", k.name, seed), func(t *testing.T) {
				t.Parallel()
				all := everything(t, k, seed+uint64(100*i), sz)
				hintsAlone(t, k, seed+uint64(100*i), sz, all)
				reconcilerAlone(t, k, seed+uint64(100*i), sz, all)
			})
		}
	}
}

// everything is the world as it is meant: everybody tells, asks and compares, and then the ledger
// is lost for a trial.
func everything(t *testing.T, k kind, seed uint64, sz size) (e ends) {
	t.Helper()
	play(t, mode{name: "everything", webhooks: true, sweeps: true, compares: true}, k, seed, sz, func(t *testing.T, s *scene) {
		t.Helper()
		s.goOn(t, 30*time.Minute)
		p := s.quiet(t)
		s.settled(t, p, every)
		s.gate(t, every)
		s.dry(t, p)
		e = s.ends()
		s.vanished(t, p)
		s.rebuilt(t)
		s.goOn(t, 3*time.Hour)
		s.settled(t, s.quiet(t), every)
		s.dry(t, s.quiet(t))
		s.ends().same(t, s, "I-8: the rebuilt ledger came to another end", e, every)
		s.always(t)
	})
	return e
}

// hintsAlone is I-10: nobody sweeps, nothing is compared, and webhooks say no more than that
// something changed.
func hintsAlone(t *testing.T, k kind, seed uint64, sz size, all ends) {
	t.Helper()
	play(t, mode{name: "hints alone", webhooks: true, stripped: true}, k, seed, sz, func(t *testing.T, s *scene) {
		t.Helper()
		s.settled(t, s.quiet(t), told)
		s.gate(t, told)
		s.ends().same(t, s, "I-10: hints alone come to another end", all, told)
		s.always(t)
	})
}

// reconcilerAlone is I-11: no webhook comes. Once with an incremental sweep beside the comparisons,
// and once without, so that everything has to be found by comparing.
func reconcilerAlone(t *testing.T, k kind, seed uint64, sz size, all ends) {
	t.Helper()
	for _, m := range []mode{{name: "reconciler alone", sweeps: true, compares: true}, {name: "comparisons alone", compares: true}} {
		play(t, m, k, seed, sz, func(t *testing.T, s *scene) {
			t.Helper()
			p := s.quiet(t)
			s.settled(t, p, every)
			if m.sweeps {
				s.gate(t, left)
			}
			s.dry(t, p)
			s.ends().same(t, s, "I-11: the reconciler alone comes to another end", all, left)
			s.always(t)
		})
	}
}

// The ledger and everything that was heard are lost in the middle of it all, and rebuilt by a
// process that crashes on the way.
func TestLoss(t *testing.T) {
	t.Parallel()
	sz, seeds := sizes(t)
	for i, k := range kinds {
		for _, seed := range seeds {
			t.Run(fmt.Sprintf("%s, seed %d", k.name, seed), func(t *testing.T) {
				t.Parallel()
				play(t, mode{name: "loss", webhooks: true, sweeps: true, compares: true, loss: true}, k, seed+uint64(1000+100*i), sz, func(t *testing.T, s *scene) {
					t.Helper()
					p := s.quiet(t)
					s.settled(t, p, every)
					s.gate(t, every)
					s.dry(t, p)
					s.always(t)
					if s.rebuilds == 0 {
						t.Error("the ledger was never lost")
					}
				})
			})
		}
	}
}
