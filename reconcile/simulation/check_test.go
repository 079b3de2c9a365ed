package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// watched is a gate that compares every entry before and after each transaction.
//
//	I-4  versions never go down
//	I-5  a deleted object comes back only if the source has brought it back
//	     and nothing is taken for deleted that the source has not deleted
//	     a lease that was lost writes nothing: the fence of an entry never goes down
//	     what is accepted is something that the source once had
type watched struct {
	intake.Gate
	world  *world
	mu     sync.Mutex
	broken []string
}

func (w *watched) Judge(ctx context.Context, limit int, decide func(time.Time, []intake.Delivery, map[intake.Object]*intake.Entry) error) (int, error) {
	return w.Gate.Judge(ctx, limit, func(now time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
		before := map[intake.Object]intake.Entry{}
		for o, e := range es {
			before[o] = *e
		}
		if err := decide(now, ds, es); err != nil {
			return err
		}
		for o, e := range es {
			b := before[o]
			w.compare(&b, e, now)
		}
		return nil
	})
}

func (w *watched) Lease(ctx context.Context, limit int, decide func(time.Time, *intake.Entry) error) ([]intake.Entry, error) {
	return w.Gate.Lease(ctx, limit, func(now time.Time, e *intake.Entry) error {
		before := *e
		defer func() { w.compare(&before, e, now) }()
		return decide(now, e)
	})
}

func (w *watched) Update(ctx context.Context, o intake.Object, decide func(time.Time, *intake.Entry) error) error {
	return w.Gate.Update(ctx, o, func(now time.Time, e *intake.Entry) error {
		before := *e
		defer func() { w.compare(&before, e, now) }()
		return decide(now, e)
	})
}

func (w *watched) compare(before, after *intake.Entry, now time.Time) {
	o := w.world.byName[after.Object]
	complain := func(format string, args ...any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.broken = append(w.broken, after.Object.String()+": "+fmt.Sprintf(format, args...))
	}
	if after.Version.Compare(before.Version) < 0 {
		complain("I-4: version %s became %s", before.Version.Revision(), after.Version.Revision())
	}
	if after.Fence < before.Fence || after.Accepted < before.Accepted || after.Delivered < before.Delivered || after.Delivered > after.Accepted {
		complain("a count went down: %+v became %+v", before, after)
	}
	n := o.at(now)
	if before.Deleted && !after.Deleted && !o.ever(n, func(i int) bool { return i > 0 && o.states[i-1].deleted }) {
		complain("I-5: it was resurrected, and the source never brought it back")
	}
	if after.Deleted && !before.Deleted && !o.ever(n, func(i int) bool { return o.states[i].deleted }) {
		complain("it was taken for deleted, and the source never deleted it")
	}
	if !after.Deleted && after.Accepted > before.Accepted && !o.ever(n, func(i int) bool { return fingerprint(o.body(i, "")) == after.Fingerprint }) {
		complain("%s was accepted, which the source never had", after.Body)
	}
}

// ever reports whether f holds for a state up to the n-th.
func (o *object) ever(n int, f func(i int) bool) bool {
	for i := range n + 1 {
		if f(i) {
			return true
		}
	}
	return false
}

// disposition is what the end of a run shows.
type disposition struct {
	told      int // objects of whose last change somebody was told
	untold    int
	different []string // I-3: told, and yet not as the source has them
	unfinished,
	unheard []string // I-13: acknowledged, and not there
	works []string // the chain of works does not end with the source's state
	end   map[intake.Object]string
}

// judge compares what is stored with what is true.
func (s *scene) judge(ctx context.Context) (*disposition, error) {
	entries, err := s.store.Entries(ctx, intake.EntryFilter{Limit: 10 * len(s.world.objects)})
	if err != nil {
		return nil, err
	}
	v := &disposition{end: map[intake.Object]string{}}
	known := map[intake.Object]*intake.Entry{}
	for i := range entries {
		e := &entries[i]
		known[e.Object] = e
		if e.Owing() || e.Blocked != "" || len(e.Parked) > 0 || !e.Due.IsZero() || e.Holder != "" {
			v.unfinished = append(v.unfinished, fmt.Sprintf("%+v", *e))
		}
	}
	for _, o := range s.world.objects {
		if !o.told {
			v.untold++
			continue
		}
		v.told++
		e := known[o.Object]
		if e == nil {
			v.different = append(v.different, o.String()+": nothing is known of it")
			continue
		}
		v.end[o.Object] = fmt.Sprintf("%t %x", e.Deleted, e.Fingerprint)
		if e.Deleted {
			v.end[o.Object] = "gone"
		}
		if why := o.differs(e); why != "" {
			v.different = append(v.different, fmt.Sprintf("%s: %s: %+v; the source has %+v", o, why, *e, o.states))
		}
		if why := s.works.differ(o); why != "" {
			v.works = append(v.works, o.String()+": "+why)
		}
	}
	return v, nil
}

// differs says how the entry differs from the object at last. I-3.
func (o *object) differs(e *intake.Entry) string {
	n := len(o.states) - 1
	switch {
	case e.Deleted != o.states[n].deleted:
		return "deleted on one side"
	case e.Deleted:
		return ""
	case e.Fingerprint != fingerprint(o.body(n, "")):
		return "another content"
	case e.Version.Compare(o.kind.version(o, n)) != 0:
		return "another version"
	}
	return ""
}

// differ says how the chain of works on the object differs from its last state. An object that was
// gone before it was ever accepted has none.
func (w *works) differ(o *object) string {
	chain, n := w.chains[o.Object], len(o.states)-1
	gone := o.states[n].deleted
	switch {
	case len(chain) == 0 && gone:
		return ""
	case len(chain) == 0:
		return "no work was ever started"
	case chain[len(chain)-1].Deleted != gone:
		return fmt.Sprintf("the last work says deleted %t", !gone)
	case !gone && fingerprint(chain[len(chain)-1].Body) != fingerprint(o.body(n, "")):
		return fmt.Sprintf("the last work is about %s", chain[len(chain)-1].Body)
	}
	return ""
}
