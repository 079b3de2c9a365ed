package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// Rebuild records in a ledger that has lost works what stands of them, as far as source and
// destination tell. It makes nothing, sends nothing and undoes nothing. Stop every coordinator and
// every other program that may start works first, and wait until what they sent has settled. since
// says since when that is so: a listing that began earlier may have missed what was made, and is
// made again. Zero is now.
//
// A document that is exactly as it should be is adopted, and so is one that is untouched since an
// older version of its object: bringing it up to date is left to do. What does not match is
// recorded in review, so that nothing is started for it. Where there is no document nothing is
// recorded. A work that the ledger knows is left as it is, so Rebuild may be called again, and goes
// on where it was cut off. Incremental sweeps begin again with everything the source has.
func (r *Reconciler) Rebuild(ctx context.Context, since time.Time, by saga.Actor) (Report, error) {
	rep := Report{Job: r.name}
	if since.IsZero() {
		since = r.sweep.Now()
	}
	b := &rebuilding{Reconciler: r, by: by, report: &rep}
	why, err := b.rebuild(ctx, since)
	if err != nil {
		rep.Result = schedule.Failed
		err = fmt.Errorf("rebuild %s: %w", r.name, err)
	}
	rep.conclude(append(why, b.words()...)...)
	r.tell("rebuilt", &rep)
	return rep, err
}

// rebuilding is one rebuild on its way.
type rebuilding struct {
	*Reconciler
	by     saga.Actor
	report *Report
	batch  []*sight
	looks  *looks

	older, quarantined int64
	bare               bool // the destination lists nothing, and the source does
}

func (b *rebuilding) words() (why []string) {
	if b.older > 0 {
		why = append(why, fmt.Sprintf("%d were adopted in part (an older version of the object, or without each step of the definition), and are brought up to date when a coordinator runs", b.older))
	}
	if b.quarantined > 0 {
		why = append(why, fmt.Sprintf("%d do not match, and are in review", b.quarantined))
	}
	return why
}

func (b *rebuilding) rebuild(ctx context.Context, since time.Time) (why []string, err error) {
	l, err := b.listSince(ctx, since)
	if err != nil {
		return nil, err
	}
	if l.missing != "" {
		b.report.Result = schedule.Partial
		return []string{"nothing is rebuilt yet: " + l.missing}, nil
	}
	refused, err := b.judge(ctx, l)
	if err != nil {
		return nil, err
	}
	if refused != "" {
		b.report.Result = schedule.Refused
		return []string{refused}, nil
	}
	b.looks = newLooks(&b.bounds)
	err = b.unknown(ctx, l, func(key string) error {
		b.batch = append(b.batch, &sight{item: plan.Item{Key: key}})
		if len(b.batch) < batchSize {
			return nil
		}
		return b.flush(ctx)
	})
	if err != nil {
		return nil, err
	}
	if err := b.flush(ctx); err != nil {
		return nil, err
	}
	if err := b.unseen(ctx, l); err != nil {
		return nil, err
	}
	if b.bare && b.report.Planned == 0 { // a wrong account, or an error that reads as an empty page
		b.report.Result = schedule.Refused
		return []string{fmt.Sprintf("the source has %d objects, and the destination has nothing under our mark, listed or asked for: there is "+
			"nothing to rebuild from. If that is so, begin without a rebuild; if not, look at what Marked and Find ask for", b.report.Seen)}, nil
	}
	if b.report.Failed > 0 { // a sweep from the beginning would start what stands and is not recorded
		return []string{"the incremental sweeps begin again only when all is recorded: rebuild again"}, nil
	}
	return nil, b.sweep.Restart(ctx)
}

// judge compares once without doing anything: a mapping that makes everything look different would
// put everything in review.
func (b *rebuilding) judge(ctx context.Context, l *listing) (string, error) {
	counts, err := b.compare(ctx, l, func(*plan.Finding) error { return nil })
	if err != nil {
		return "", err
	}
	b.report.Seen = counts.Census.Keys
	proposal := plan.Plan{MappingVersion: b.sweep.Mapping, Counts: counts.Census, Differences: counts.Spread}
	if last, err := b.plans.Latest(ctx, b.name); err == nil {
		proposal.PreviousMappingVersion = last.MappingVersion
	} else if !errors.Is(err, plan.ErrNotFound) {
		return "", err
	}
	b.bare = counts.Census.Destination == 0 && counts.Census.Source > b.bounds.Few
	return b.bounds.Diagnose(&proposal), nil
}

// unknown hands on the keys of documents, void ones too, for which the ledger has no work, or one
// whose adoption was cut off.
func (b *rebuilding) unknown(ctx context.Context, l *listing, yield func(key string) error) error {
	documents := b.read(ctx, scan.DestinationSide, l.destination)
	defer documents.Close()
	heads, head, more := b.heads(ctx), plan.Head{}, true
	for last := ""; ; {
		d, err := documents.Next()
		if d == nil || err != nil {
			return err
		}
		if d.Key == last {
			continue
		}
		for last = d.Key; more && head.Key < d.Key; {
			if more, err = heads(&head); err != nil {
				return err
			}
		}
		if more && head.Key == d.Key && head.Known.Status != saga.Adopting {
			continue
		}
		if err := yield(d.Key); err != nil {
			return err
		}
	}
}

// unseen looks at the objects that want a document, of which the listing has none and the ledger
// nothing: one miss is no proof, and what is not recorded is started by the next word about
// it.
func (b *rebuilding) unseen(ctx context.Context, l *listing) error {
	_, err := b.compare(ctx, l, func(f *plan.Finding) error {
		if f.Class != plan.Missing {
			return nil
		}
		b.batch = append(b.batch, &sight{item: plan.Item{Key: f.Key}})
		if len(b.batch) < batchSize {
			return nil
		}
		return b.flush(ctx)
	})
	if err != nil {
		return err
	}
	return b.flush(ctx)
}

// missed reports whether a look found no object at the source, or no document at the destination.
func missed(s *sight) bool {
	return s.err == nil && s.item.Known == nil && (s.object == nil || len(s.item.Documents) == 0)
}

// flush looks at a batch of keys and records what stands of them.
func (b *rebuilding) flush(ctx context.Context) error {
	if err := b.proceed(ctx); err != nil {
		return err
	}
	batch := b.batch
	b.batch = b.batch[:0]
	b.looks.each(ctx, b.workers, batch, func(s *sight) { b.behold(ctx, s) })
	if again := slices.DeleteFunc(slices.Clone(batch), func(s *sight) bool { return !missed(s) }); len(again) > 0 && ctx.Err() == nil {
		if err := nap.For(ctx, b.settle); err != nil {
			return err
		}
		b.looks.each(ctx, b.workers, again, func(s *sight) { b.behold(ctx, s) })
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	over := b.looks.over() // what was seen until then is recorded all the same
	var as []adoptee
	for _, s := range batch {
		switch a, err := b.remains(s); {
		case err != nil && over != nil:
			b.report.Failed++
		case err != nil:
			b.failed(s.item.Key, err)
		case a != nil:
			as = append(as, *a)
		}
	}
	if err := b.record(ctx, as); err != nil || over == nil {
		return err
	}
	return fmt.Errorf("looking at what stands: %w; rebuild again, it goes on", over)
}

func (b *rebuilding) failed(key string, err error) {
	b.report.Failed++
	b.log.WithField("work", key).WithError(err).Warn("not rebuilt; rebuild again")
}

// behold looks at what source and destination have of a key that the ledger does not know, or whose
// adoption was cut off.
func (b *rebuilding) behold(ctx context.Context, s *sight) {
	s.err = guard(func() error {
		k, err := b.instances.Known(ctx, s.item.Key)
		if err != nil {
			return fmt.Errorf("ask the ledger: %w", err)
		}
		if s.item.Known = k; k != nil && k.Status != saga.Adopting {
			return nil
		}
		s.item.Known, s.item.Looked = nil, plan.Looks // a miss makes nothing here
		if err := b.get(ctx, s, false); err != nil {
			return fmt.Errorf("ask the source: %w", err)
		}
		if err := b.find(ctx, s); err != nil {
			return fmt.Errorf("ask the destination: %w", err)
		}
		s.classify(&b.policy)
		return b.behind(ctx, s)
	})
}

// remains is what is to be recorded of a key; nil when nothing is.
func (b *rebuilding) remains(s *sight) (*adoptee, error) {
	f := &s.finding
	switch {
	case s.err != nil:
		return nil, s.err
	case s.item.Known != nil: // it began meanwhile, or was never lost
		return nil, nil
	case f.Class == plan.LedgerLost:
		a, err := b.adoption(s)
		return &a, err
	case len(s.item.Documents) == 0:
		return nil, nil
	case s.object == nil && len(f.Documents) == 0:
		return nil, nil
	case s.object != nil && s.item.Truth.Unreadable != "" && len(f.Documents) > 0 && s.item.Truth.Revision != "" && saga.CheckRevision(s.item.Truth.Revision) == nil:
		return b.quarantine(s), nil // what hears of it may be able to read it, and would start it
	case s.object == nil || s.item.Truth.Unreadable != "":
		b.report.NeedsReview++
		b.log.WithFields(logrus.Fields{"work": f.Key, "class": string(f.Class), "why": f.Reason}).Warn("left a document out of the ledger: it has no object that can be read")
		return nil, nil
	case len(f.Documents) == 0:
		return b.undone(s)
	case b.earlier(s):
		a, err := b.adoption(s)
		a.change.Revision, a.change.Deleted = livingOf(s.item.Documents)[0].Revision, false
		return &a, err
	default:
		return b.quarantine(s), nil
	}
}

// undone is a work whose documents are all void. It is recorded, because it is unknown whether its
// mail was sent: if the object is sold again, that is a newer version of the same work. An object
// that is wanted is adopted as the version that the void document shows: making it again is for a
// run that has bounds.
func (b *rebuilding) undone(s *sight) (*adoptee, error) {
	a, err := b.adoption(s)
	a.cancelled, a.change.Deleted = true, false
	shown := ""
	for _, d := range s.item.Documents {
		if saga.CompareRevisions(d.Revision, shown) > 0 {
			shown = d.Revision
		}
	}
	if s.item.Truth.Wanted && shown != "" && saga.CompareRevisions(shown, a.change.Revision) < 0 {
		a.change.Revision = shown
	}
	return &a, err
}

// earlier reports whether the one document of a cancelled object is as an earlier version of it
// was, and says what the object says still. Then it is adopted as that version left it; withdrawing
// it is for a run that has bounds. What the earlier version said is otherwise not known, and with
// the present input in its place the next version might look like no news: that is for a person.
func (b *rebuilding) earlier(s *sight) bool {
	live := livingOf(s.item.Documents)
	t := s.item.Truth
	return !t.Wanted && len(live) == 1 && live[0].Intact && live[0].Revision != "" &&
		saga.CompareRevisions(live[0].Revision, t.Revision) < 0 && says(live[0].Fields, t.Fields)
}

// says reports whether a document says everything that an object does.
func says(document, object plan.Fields) bool {
	for name, want := range object {
		if document[name] != want {
			return false
		}
	}
	return len(object) > 0
}

// quarantine keeps everybody from starting anything for a key before a person has decided.
func (b *rebuilding) quarantine(s *sight) *adoptee {
	f := &s.finding
	a := &adoptee{key: f.Key, change: s.stands(b.source.Object), quarantine: f.Reason}
	if f.Suggestion != "" {
		a.quarantine += "; " + f.Suggestion
	}
	live, void := apart(s.item.Documents)
	if shows := oldest(live); !s.item.Truth.Wanted && shows != "" && saga.CompareRevisions(shows, a.change.Revision) < 0 {
		a.change.Revision, a.change.Deleted = shows, false // so that the saga can hear that it was cancelled since
	}
	_ = guard(func() (err error) { // what does not match may show nothing that can be read
		a.effects, err = b.effects(s.object, live, void)
		return err
	})
	for step, e := range a.effects {
		id := idOf(&e)
		if slices.ContainsFunc(live, func(d plan.Document) bool { return d.ID == id }) {
			a.effects[step] = Effect{ExternalID: id, Foreign: true}
		}
	}
	return a
}

// oldest is the oldest version that any of the documents says it shows; "" when one does not say.
func oldest(docs []plan.Document) (revision string) {
	for i := range docs {
		if i == 0 || saga.CompareRevisions(docs[i].Revision, revision) < 0 {
			revision = docs[i].Revision
		}
	}
	return revision
}

// record adopts, and counts what became of it.
func (b *rebuilding) record(ctx context.Context, as []adoptee) error {
	if len(as) == 0 {
		return nil
	}
	if err := b.proceed(ctx); err != nil { // the looks may have waited long for their turn
		return err
	}
	b.report.Planned += int64(len(as))
	answers, err := b.adopt(ctx, as, b.by)
	if err != nil {
		return err
	}
	for i, a := range answers {
		switch {
		case a.Err != nil:
			b.failed(as[i].key, a.Err)
		case a.Known:
			b.report.Superseded++
		default:
			b.report.Applied++
			b.sort(&as[i], a.Status)
		}
	}
	return nil
}

// sort counts what an adoption leaves to do.
func (b *rebuilding) sort(a *adoptee, s saga.Status) {
	switch {
	case a.quarantine != "":
		b.quarantined++
		b.report.NeedsReview++
	case s.Live():
		b.older++
	}
}
