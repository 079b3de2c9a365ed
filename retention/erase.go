package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// Erasure says what is to be erased: all that is kept of a subject ([saga.Subject]), or of a work; DryRun only tells.
type Erasure struct {
	Subject string
	Work    string
	Saga    string // empty: of every saga
	DryRun  bool
	By      saga.Actor // who has it erased, and why: put on record before it is
}

// Erased is what was erased, or would be.
type Erased struct {
	Works []ErasedWork
	// Named are works that were erased, but for their ids: a transaction of some other client of the database has been open since then.
	// The next run takes them.
	Named int
}

// ErasedWork is one work.
type ErasedWork struct {
	ID      saga.ID // as it was
	As      string  // its id from then on; empty: it was not erased
	Records int
	Objects []string // of webhooks, whose deliveries went with it
	Left    string   // why it, or one of its objects, was left
	Later   bool     // a run of retention erases it once it has ended, and is not held
}

// ErrReason is the error of [Erase] where the reason names what is to be erased.
var ErrReason = errors.New("the reason says what is to be erased, and would stay on record: write one that does not")

// Erase erases what is kept of works that have ended: inputs, results, the history, what people said, tags, what waited, counts of duplicates,
// acts that name the work, and deliveries that led to it. What is left is the status, with hashes of the work id and of external ids under the
// ledger's secret: by them a duplicate is known. Work that has not ended, or is held, is marked, and erased by a later run.
func Erase(ctx context.Context, db store.DB, e Erasure) (Erased, error) {
	out, err := erase(ctx, db, &e)
	if err != nil {
		return out, fmt.Errorf("erase: %w", err)
	}
	return out, nil
}

func erase(ctx context.Context, db store.DB, e *Erasure) (out Erased, err error) {
	var filters []ledger.Filter
	var failed []error
	if e.Subject != "" && ledger.HasWord(e.By.Reason, e.Subject) || ledger.Names(e.By.Reason, e.Work) {
		return out, ErrReason
	}
	switch {
	case e.Subject != "":
		filters = append(filters, ledger.Filter{Tag: saga.SubjectTag(e.Subject), Saga: e.Saga})
	case e.Work != "":
		filters = append(filters, ledger.Filter{Work: e.Work, Saga: e.Saga}, ledger.Filter{Work: db.Hide(e.Work), Saga: e.Saga})
	default: // what was marked
		filters = append(filters, ledger.Filter{Tag: ledger.ToErase})
		e.By = saga.Actor{Name: "retention", Reason: "it had not ended when a person had it erased"}
	}
	for _, f := range filters {
		heads, err := all(ctx, db, f)
		if err != nil {
			return out, err
		}
		for i := range heads {
			if err := schedule.Proceed(ctx); err != nil { // a person may have paused the job
				return out, err
			}
			w, err := eraseOne(ctx, db, &heads[i], e)
			if err != nil { // of this one: the others are erased
				w.As, w.Left = "", err.Error()
				failed = append(failed, fmt.Errorf("%s: %w", w.ID, err))
			}
			out.Works = append(out.Works, w)
		}
	}
	if !e.DryRun {
		out.Named, err = db.Unname(ctx)
	}
	return out, errors.Join(append(failed, err)...)
}

// erasePause is between two works, so that what runs comes in between.
const erasePause = 5 * time.Millisecond

// all lists what a filter selects.
func all(ctx context.Context, db ledger.Ledger, f ledger.Filter) (heads []ledger.Instance, err error) {
	for f.Limit = 500; ; {
		page, err := db.List(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("list what is to be erased: %w", err)
		}
		heads = append(heads, page.Instances...)
		if f.After = page.Next; f.After == "" {
			return heads, nil
		}
	}
}

func eraseOne(ctx context.Context, db store.DB, h *ledger.Instance, e *Erasure) (w ErasedWork, err error) {
	w.ID = h.ID
	marked := e.Subject == "" && e.Work == ""
	switch {
	case h.Erased():
		return w, eraseSince(ctx, db, h, &w, e)
	case marked && !h.Status.Terminal():
		w.Left, w.Later = "it has not ended", true
		return w, nil
	}
	first := func() error { // it is on record before it is done, and of one that is marked that it was asked for already
		return db.Did(ctx, ledger.DeedErase, h.ID.Saga+" "+db.Hide(h.ID.Work), e.By)
	}
	if !e.DryRun && !marked { // that it was asked for is on record, whatever comes of it
		if err := first(); err != nil {
			return w, err
		}
		first = func() error { return nil }
	}
	if !h.Status.Terminal() {
		w.Left, w.Later = fmt.Sprintf("it has not ended, it is %s", statusWords(h.Status)), true
	} else {
		err = eraseEnded(ctx, db, h, &w, e.DryRun, first)
	}
	if err != nil || e.DryRun {
		return w, err
	}
	if w.Later && !marked {
		err = db.EraseLater(ctx, []int64{h.Number})
	}
	_ = nap.For(ctx, erasePause)
	return w, err
}

// eraseEnded erases a work that has ended.
func eraseEnded(ctx context.Context, db store.DB, h *ledger.Instance, w *ErasedWork, dry bool, first func() error) error {
	records, err := db.History(ctx, h.ID)
	if err != nil {
		return err
	}
	st, err := machine.Fold(h.ID, records)
	switch {
	case err != nil:
		w.Left = "it cannot be read, run amends check: " + err.Error()
		return nil
	case !st.Reduced():
		w.Left, w.Later = "a newer version of its source is about to run", true
		return nil
	}
	one := ledger.Reduction{Head: *h, To: ledger.LeftRemains, Tags: st.Tags, Remains: st.Remains(), As: db.Hide(h.ID.Work)}
	if w.Records = len(records); h.Left() != ledger.LeftRemains {
		one.Tail = st.Seq
	} else {
		w.Records = 0
	}
	one.Remains.Tags = nil
	for i := range one.Remains.Steps {
		s := &one.Remains.Steps[i]
		s.ExternalID = db.Hide(s.ExternalID)
	}
	held, err := isHeld(ctx, db, h.ID)
	if held {
		w.Left, w.Later = "a person holds it", true
		return err
	}
	objects, failed := objectsOf(ctx, db, h.ID.Work, records)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if done, err := forgetObjects(ctx, db, objects, w, dry); !done || err != nil { // before the records: what leads to them goes with the records
		return err
	}
	if !dry {
		if err := first(); err != nil {
			return err
		}
		done, err := db.Reduce(ctx, []ledger.Reduction{one})
		if err != nil {
			return err
		}
		if !done[0] {
			w.Left, w.Later = "a person holds it, or it moved just now", true
			return nil
		}
	}
	w.As = one.As
	return nil
}

// eraseSince erases what has come, since a work was erased, of the object that it is called after.
func eraseSince(ctx context.Context, db store.DB, h *ledger.Instance, w *ErasedWork, e *Erasure) error {
	w.Left = "it was erased before"
	objects, err := objectsOf(ctx, db, e.Work, nil)
	if err == nil && len(objects) > 0 && !e.DryRun {
		err = db.Did(ctx, ledger.DeedErase, h.ID.Saga+" "+db.Hide(h.ID.Work), e.By)
	}
	if err == nil {
		_, err = forgetObjects(ctx, db, objects, w, e.DryRun)
	}
	w.Later = false // no run of retention looks at it again
	return err
}

// forgetObjects forgets objects of webhooks, unless one is still owed something.
func forgetObjects(ctx context.Context, db store.DB, objects []intake.Object, w *ErasedWork, dry bool) (done bool, err error) {
	for _, o := range objects {
		gone := dry
		if !dry {
			if gone, err = db.Forget(ctx, o); err != nil {
				return false, err
			}
		}
		if !gone {
			w.Left, w.Later = fmt.Sprintf("deliveries of %s are still worked on, or wait for a person", o), true
			return false, nil
		}
		w.Objects = append(w.Objects, o.String())
	}
	return true, nil
}

func isHeld(ctx context.Context, db ledger.Controls, id saga.ID) (bool, error) {
	all, _, err := db.Controls(ctx)
	return slices.ContainsFunc(all, func(c ledger.Control) bool {
		return c.Kind == ledger.ControlHold && c.Name == ledger.HoldName(id) && len(c.Body) > 0
	}), err
}

// objectsOf are the object that a work is called after, and those of the deliveries that led to what its records say.
func objectsOf(ctx context.Context, db store.DB, work string, records []machine.Record) (objects []intake.Object, err error) {
	seen := make(map[intake.Object]bool)
	if o, is := intake.ParseObject(work); is {
		heard, err := db.Deliveries(ctx, intake.DeliveryFilter{Object: o, Limit: 1})
		e, failed := db.Entry(ctx, o)
		if err := errors.Join(err, failed); err != nil {
			return nil, err
		}
		if seen[o] = e != nil || len(heard) > 0; seen[o] {
			objects = append(objects, o)
		}
	}
	var causes []string // of a newer version it is said why
	for i := range records {
		causes = append(causes, records[i].Cause, records[i].Why)
	}
	for _, cause := range causes {
		slash := strings.LastIndexByte(cause, '/')
		if slash < 0 {
			continue
		}
		number, err := strconv.ParseInt(cause[slash+1:], 10, 64)
		if err != nil {
			continue // it has another cause
		}
		d, err := db.Delivery(ctx, number)
		switch {
		case errors.Is(err, intake.ErrNotFound):
		case err != nil:
			return nil, err
		case d.Name() == cause && !seen[d.Object]:
			seen[d.Object] = true
			objects = append(objects, d.Object)
		}
	}
	return objects, nil
}

func statusWords(s saga.Status) string {
	if s == saga.Review {
		return "in review"
	}
	return string(s)
}
