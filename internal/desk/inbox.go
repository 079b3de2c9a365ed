package desk

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// meaning is a disposition as a person reads it.
type meaning struct {
	disposition intake.Disposition
	words       string
}

// meanings is the one table of dispositions: what lists can be narrowed to, and what is said of one.
var meanings = []meaning{
	{intake.Applied, "it was newer than what was known, and became the accepted state"},
	{intake.Tombstoned, "the object is gone at its source, and that became the accepted state"},
	{intake.Hint, "it proves that something changed, not to what, so the source is asked"},
	{intake.Tie, "the same version was known with another content, so the source is asked"},
	{intake.Conflict, "an earlier delivery had its id and said something else, so the source is asked"},
	{intake.Parked, "it is a change whose predecessor has not come; when that does not come in time, the source is asked"},
	{intake.Stale, "it was older than what was known: nothing follows from it"},
	{intake.Duplicate, "what it says was known: nothing follows from it"},
	{intake.Echo, "it tells of our own doing: nothing follows from it"},
	{intake.Malformed, "it was signed by its source and could not be read: nothing follows from it"},
	{intake.Unknown, "it names no object, or one whose source, tenant or type is not set up: nothing follows from it"},
	{intake.Ignored, "it was not meant to be judged: nothing follows from it"},
}

// Dispositions are all of them.
func Dispositions() []string {
	return docs(meanings, func(m *meaning) string { return string(m.disposition) })
}

// meaningOf is a disposition in words; "" for none.
func meaningOf(v intake.Disposition) string {
	if m := First(meanings, func(m *meaning) bool { return m.disposition == v }); m != nil {
		return m.words
	}
	return ""
}

// Deliveries says which deliveries are meant.
type Deliveries struct {
	Object      string `query:"object" json:"object,omitempty" doc:"about this object: SOURCE:TYPE:ID, or SOURCE:TENANT:TYPE:ID"`
	Source      string `query:"source" json:"source,omitempty" doc:"of this source"`
	Tenant      string `query:"tenant" json:"tenant,omitempty" doc:"of this tenant of a source"`
	Type        string `query:"type" json:"type,omitempty" doc:"about objects of this type"`
	Disposition string `query:"disposition" json:"disposition,omitempty" doc:"with this disposition: applied, tombstoned, hint, tie, id-conflict, out-of-order, stale, duplicate, echo, malformed, unknown, ignored"`
	Since       string `query:"since" json:"since,omitempty" doc:"received at this time or later: 2006-01-02T15:04:05Z, 2006-01-02, or how long ago, such as 2h or 7d"`
	Until       string `query:"until" json:"until,omitempty" doc:"received before this time"`
}

// filter is what they are read by, as far as that needs no database, and what is wrong with it.
func (s *Deliveries) filter(now time.Time) (f intake.DeliveryFilter, wrong Wrong) {
	f = intake.DeliveryFilter{Source: s.Source, Disposition: intake.Disposition(s.Disposition), Object: intake.Object{Tenant: s.Tenant, Type: s.Type}}
	wrong = oneOf("disposition", s.Disposition, Dispositions())
	if s.Object != "" {
		wrong.If(s.Type != "", "--object names the type already; leave out --type")
		o, err := objectOf(s.Object, s.Tenant)
		wrong.If(err != nil, notAnObject(s.Object))
		f.Object = o
	}
	for _, t := range []struct {
		flag, text string
		at         *time.Time
	}{{"--since", s.Since, &f.From}, {"--until", s.Until, &f.Until}} {
		at, err := PointInTime(t.text, now)
		wrong.Err(t.flag+" ", err)
		*t.at = at
	}
	wrong.If(!f.From.IsZero() && !f.Until.IsZero() && !f.From.Before(f.Until), "--since is not before --until, so nothing can match")
	return f, wrong
}

func notAnObject(text string) string {
	return fmt.Sprintf("%q names no object: it is SOURCE:TYPE:ID, or SOURCE:TENANT:TYPE:ID, with %%3A for a colon within a part", text)
}

// objectOf is the object that a text names, of the tenant that is said beside it.
func objectOf(text, tenant string) (intake.Object, error) {
	o, ok := intake.ParseObject(text)
	if o.Tenant = cmp.Or(o.Tenant, tenant); !ok || tenant != "" && o.Tenant != tenant {
		return intake.Object{}, Usage("", notAnObject(text))
	}
	return o, nil
}

// InboxIn narrows the list of deliveries.
type InboxIn struct {
	Deliveries
	Pending bool `query:"pending" doc:"that wait to be judged"`
	Limit
	Before int64 `query:"before" doc:"only deliveries with a smaller number: the next page"`
}

// Delivery is one webhook about one object.
type Delivery struct {
	Number      int64              `json:"number,string"` // the cursor: --before
	Received    *time.Time         `json:"receivedAt"`
	WorkID      string             `json:"workId"` // the object as works are named by it
	Object      intake.Object      `json:"object"`
	Topic       string             `json:"topic"`
	EventID     string             `json:"eventId"`
	OccurredAt  *time.Time         `json:"occurredAt"`  // by the event's own word
	PayloadKind intake.Payload     `json:"payloadKind"` // full, delta, thin
	Deleted     bool               `json:"deleted"`
	Version     string             `json:"version"`
	SignedBy    string             `json:"signedBy"` // the name of the one that signed, never the secret
	Copies      int                `json:"copies"`
	Last        *time.Time         `json:"lastAt"` // when the latest copy came
	ProcessedAt *time.Time         `json:"processedAt"`
	Disposition intake.Disposition `json:"disposition"` // while processedAt is null, of an earlier judgement; "": none
	Reason      string             `json:"reason"`
	Body        *Body              `json:"body"` // null: there was none, or it is not kept any more
}

func deliveryOf(d *intake.Delivery, bodies bool) Delivery {
	return Delivery{
		Number: d.Number, Received: utc(d.Received), WorkID: d.Object.String(), Object: d.Object, Topic: d.Topic, EventID: d.ID,
		OccurredAt: utc(d.At), PayloadKind: d.Payload, Deleted: d.Deleted, Version: d.Version.Revision(), SignedBy: d.Secret,
		Copies: d.Copies, Last: utc(d.Last), ProcessedAt: utc(d.Judged), Disposition: d.Outcome, Reason: d.Because,
		Body: bodyOf(d.Body, bodies),
	}
}

// Became is what became of a delivery, in a word or two. Of one that is replayed the disposition is the former one.
func (d *Delivery) Became() string {
	switch {
	case d.ProcessedAt != nil:
		return string(d.Disposition)
	case d.Disposition != "":
		return "to be judged again"
	default:
		return "to be judged"
	}
}

// Inbox lists deliveries, newest first.
func (d *Desk) Inbox(ctx context.Context, in *InboxIn) (*List[Delivery], error) {
	f, wrong := in.filter(d.now())
	f.Unjudged, f.Limit, f.Before = in.Pending, in.Limit.N+1, in.Before
	return page(append(wrong, in.Limit.faults()...), &in.Limit, func() ([]intake.Delivery, error) { return d.db.Deliveries(ctx, f) },
		func(d *intake.Delivery) Delivery { return deliveryOf(d, false) }, func(d *intake.Delivery) string { return strconv.FormatInt(d.Number, 10) })
}

// Count is how many deliveries of a source met one disposition, or were refused for one reason in the last 90 days.
type Count struct {
	Source      string             `json:"source"`
	Disposition intake.Disposition `json:"disposition"`       // "": to be judged; refused: it is none
	Refused     string             `json:"refused,omitempty"` // why
	Count       int64              `json:"count"`
	Last        *time.Time         `json:"lastAt"` // of what was refused the day, UTC
}

// Became is the disposition, and Meaning what it means.
func (c *Count) Became() string {
	return cmp.Or(With("refused: ", c.Refused), string(c.Disposition), "to be judged")
}

func (c *Count) Meaning() string {
	return cmp.Or(When(c.Refused != "", "it was not taken, and nothing of it is kept"), meaningOf(c.Disposition), "the gate has not judged it yet")
}

// Counts counts deliveries by source and disposition, and behind them those that were refused.
func (d *Desk) Counts(ctx context.Context, _ *Nothing) (*All[Count], error) {
	counts, err := d.db.Counts(ctx)
	all := docs(counts, func(c *intake.Count) Count {
		return Count{Source: c.Source, Disposition: c.Disposition, Count: c.Count, Last: utc(c.Last)}
	})
	_, refused, rerr := d.blockedDays(ctx, d.now().Add(-blockedFor))
	slices.SortStableFunc(refused, func(a, b ledger.BlockedDay) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.By, b.By))
	})
	for _, day := range refused {
		why := intake.Refusal(day.By)
		if n := len(all) - 1; n < 0 || all[n].Refused != why || all[n].Source != day.Source {
			all = append(all, Count{Source: day.Source, Disposition: "refused", Refused: why})
		}
		c := &all[len(all)-1]
		c.Count, c.Last = c.Count+day.Count, utc(day.Day)
	}
	return answer(All[Count]{all}, errors.Join(err, rerr))
}

// ObjectsIn narrows the list of objects.
type ObjectsIn struct {
	Object  string `path:"object"` // one alone
	Blocked bool   `query:"blocked" doc:"that wait for a person"`
	Held    bool   `query:"held" doc:"whose withdrawals are held"`
	Owing   bool   `query:"owing" doc:"that a fetch or a delivery is owed to"`
	Source  string `query:"source" doc:"of this source"`
	Tenant  string `query:"tenant" doc:"of this tenant of a source"`
	Type    string `query:"type" doc:"of this type"`
	Limit
	After string `query:"after" doc:"only objects behind this one: the next page"`
}

// Entry is what is known of an object.
type Entry struct {
	WorkID         string        `json:"workId"` // the object as works are named by it
	Object         intake.Object `json:"object"`
	State          string        `json:"state"` // known, gone, not known, blocked, held
	Version        string        `json:"version"`
	NewestVersion  string        `json:"newestVersion"` // that a delivery or a fetch named
	Origin         string        `json:"origin"`        // event, or fetch
	Fingerprint    string        `json:"fingerprint"`
	Body           *Body         `json:"body"`
	Accepted       int64         `json:"accepted"`  // states
	Delivered      int64         `json:"delivered"` // of them
	FetchOwed      bool          `json:"fetchOwed"`
	DeliveryOwed   bool          `json:"deliveryOwed"`
	PendingEvents  int           `json:"pendingEvents"` // a count
	Due            *time.Time    `json:"dueAt"`
	LeaseHolder    string        `json:"leaseHolder"` // the process that works on it
	LeasedUntil    *time.Time    `json:"leasedUntil"`
	FailedAttempts int           `json:"failedAttempts"` // failed in a row
	Error          string        `json:"lastError"`
	Blocked        string        `json:"blockedReason"`
	FirstSeenAt    *time.Time    `json:"firstSeenAt"`
	Updated        *time.Time    `json:"updatedAt"`

	Owed    string `json:"-"` // what is still to be done, in words
	Because string `json:"-"` // why it is where it is
	Is      string `json:"-"` // what is known, and by which word
	News    string `json:"-"` // its state, and where to look
}

// Failed is how often it failed in a row: 3×.
func (e *Entry) Failed() string {
	return When(e.FailedAttempts > 0, strconv.Itoa(e.FailedAttempts)+"×")
}

func (d *Desk) entryOf(e *intake.Entry, bodies bool) *Entry {
	if e == nil {
		return nil
	}
	j := Entry{
		WorkID: e.Object.String(), Object: e.Object, State: stateOf(e), Version: e.Version.Revision(), NewestVersion: e.Newest.Revision(),
		Origin: "event", Body: bodyOf(e.Body, bodies), Accepted: e.Accepted, Delivered: e.Delivered,
		FetchOwed: e.FetchRequested > e.FetchCompleted, DeliveryOwed: e.Accepted > e.Delivered, PendingEvents: len(e.Parked), Due: utc(e.Due),
		LeaseHolder: e.Holder, LeasedUntil: utc(Either(e.Holder != "", e.Until, time.Time{})), FailedAttempts: e.Attempts, Error: e.LastError, Blocked: e.Blocked, FirstSeenAt: utc(e.First), Updated: utc(e.Updated),
		Fingerprint: When(!e.Fingerprint.IsZero(), hex.EncodeToString(e.Fingerprint[:])), Owed: owed(e), Because: because(e, d.now()),
	}
	is, learned := j.State+With(", version ", j.Version), When(j.State != "not known", ", as an event said")
	if e.Origin > 0 {
		j.Origin, learned = "fetch", ", as its source said when it was asked"
	}
	j.Is = joined(is+learned, When(e.Newest.Compare(e.Version) > 0, "version "+j.NewestVersion+" was spoken of"))
	failed := cmp.Or(e.Blocked, With(fmt.Sprintf("failed %s: ", count(e.Attempts, "time")), e.LastError))
	j.News = joined(is, With("owed: ", j.Owed), failed) + fmt.Sprintf(" (amends inbox list --object %s%s)", quote(j.WorkID), d.flag)
	return &j
}

// Objects lists objects that were heard of, and what is owed to them.
func (d *Desk) Objects(ctx context.Context, in *ObjectsIn) (*List[*Entry], error) {
	var wrong Wrong
	for _, text := range []string{in.Object, in.After} {
		if _, ok := intake.ParseObject(text); text != "" && !ok {
			wrong = append(wrong, notAnObject(text))
		}
	}
	return page(append(wrong, in.Limit.faults()...), &in.Limit, func() ([]intake.Entry, error) { return d.entries(ctx, in) },
		func(e *intake.Entry) *Entry { return d.entryOf(e, false) }, func(e *intake.Entry) string { return e.Object.String() })
}

// entries reads a page of entries, or the one of an object.
func (d *Desk) entries(ctx context.Context, in *ObjectsIn) ([]intake.Entry, error) {
	f := intake.EntryFilter{
		Blocked: in.Blocked, Held: in.Held, Owing: in.Owing, Object: intake.Object{Source: in.Source, Tenant: in.Tenant, Type: in.Type}, Limit: in.Limit.N + 1,
	}
	f.After, _ = intake.ParseObject(in.After)
	if in.Object == "" {
		return d.db.Entries(ctx, f)
	}
	o, err := objectOf(in.Object, in.Tenant)
	if err != nil {
		return nil, err
	}
	e, err := d.db.Entry(ctx, o)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, notFound(fmt.Sprintf("nothing was heard of %s", o), "", "try: amends inbox list --source "+quote(o.Source)+" --type "+quote(o.Type))
	}
	return []intake.Entry{*e}, nil
}

// stateOf is what an object is as far as is known.
func stateOf(e *intake.Entry) string {
	switch {
	case e.Blocked != "":
		return "blocked"
	case e.Held > 0:
		return "held"
	case e.Deleted:
		return "gone"
	case e.Accepted == 0 && e.Origin == 0 && e.Version.Clock == intake.NoClock && len(e.Body) == 0:
		return "not known"
	default:
		return "known"
	}
}

// owed is what is still to be done for an object.
func owed(e *intake.Entry) string {
	return joinedBy(", ", When(e.FetchRequested > e.FetchCompleted, "fetch"), When(e.Accepted > e.Delivered, "deliver"), When(len(e.Parked) > 0, fmt.Sprintf("%d pending", len(e.Parked))))
}

// because is why an object is where it is.
func because(e *intake.Entry, now time.Time) string {
	why := cmp.Or(e.Blocked, e.LastError)
	if why == "" && e.Held > 0 {
		return "its withdrawal is beyond the bound of its source"
	}
	if e.Owing() && e.Holder != "" && e.Until.After(now) {
		return cmp.Or(why, "a process works on it; if that has died, another one does after "+iso(e.Until))
	}
	return why
}

// DeliveryIn says which delivery is shown.
type DeliveryIn struct {
	Number int64 `json:"-" path:"number"`
	Bodies bool  `json:"-" flag:"bodies" doc:"show the body of the delivery and of the accepted state, too"`
}

// Hearing is one delivery and what came of it.
type Hearing struct {
	Delivery
	Entry *Entry `json:"entry"` // null: nothing is known of the object
	Works []Head `json:"works"` // those named by the object
	Next  string `json:"next"`  // what happens by itself, and what is safe to do

	Said    string   `json:"-"` // what it said, as it was received
	Meaning string   `json:"-"` // of its disposition
	Advice  string   `json:"-"` // Next without the command
	Command string   `json:"-"` // that is safe to run; "": none is
	Shows   []string `json:"-"` // the commands that show the instances
}

// Delivery reads one delivery, what is known of its object, and the instances that are named by it.
func (d *Desk) Delivery(ctx context.Context, in *DeliveryIn) (*Hearing, error) {
	one, err := d.db.Delivery(ctx, in.Number)
	if errors.Is(err, intake.ErrNotFound) {
		return nil, notFound(fmt.Sprintf("there is no delivery %d", in.Number), "", "it never was, or it is older than what is kept; look with: amends inbox list")
	}
	if err != nil {
		return nil, err
	}
	entry, err := d.db.Entry(ctx, one.Object)
	if err != nil {
		return nil, err
	}
	p, k, err := d.heads(ctx, ledger.Filter{Work: one.Object.String()})
	if err != nil {
		return nil, err
	}
	h := &Hearing{
		Delivery: deliveryOf(&one, in.Bodies), Entry: d.entryOf(entry, in.Bodies), Said: saidBy(&one), Meaning: meaningOf(one.Outcome),
		Works: docs(p.Instances, k.head),
		Shows: docs(p.Instances, func(h *ledger.Instance) string { return d.show(h.ID) }),
	}
	h.Advice, h.Command = d.next(&one, entry, p.Instances)
	h.Next = strings.TrimSpace(h.Advice + " " + h.Command)
	return h, nil
}

// saidBy describes the content of a delivery as it was received, before the gate judges it.
func saidBy(d *intake.Delivery) string {
	words := map[intake.Payload]string{
		intake.Whole: "the whole object", intake.Delta: "a change to the object", intake.Thin: "that the object changed",
	}[d.Payload]
	words = cmp.Or(When(d.Deleted, "that the object is gone"), words, "nothing that can be judged") + With(", version ", d.Version.Revision()) + With(", as event ", d.ID)
	return When(d.Topic != "", d.Topic+": ") + words + When(!d.At.IsZero(), ", of "+iso(d.At))
}

// next says what happens by itself and what is safe to do, and the command for it, if there is one.
func (d *Desk) next(of *intake.Delivery, e *intake.Entry, works []ledger.Instance) (words, command string) {
	replay := func(reason string) string {
		return fmt.Sprintf("amends inbox replay %d%s --reason %q", of.Number, d.flag, reason)
	}
	switch {
	case of.Judged.IsZero():
		return "It is judged as soon as a process that hears runs. See that one does.", ""
	case e != nil && e.Blocked != "":
		return "Nothing more is done for the object until something new is heard of it. Mend the cause, then let this delivery go through the gate again:",
			replay("what was mended")
	case e != nil && e.Held > 0:
		return "Its withdrawal is held: its source withdraws more than its bound. Release what is held of the source, or drop it; first see how much that is:",
			"amends inbox release " + quote(of.Object.Source) + d.flag + " --reason WHY --dry-run"
	case of.Outcome == intake.Unknown && of.Object.ID == "":
		return "It names no object, as a test or a greeting does not. If it should, the program looks in a wrong place: correct that, and let it be read again:",
			replay("the Mapping looks in the right place now")
	case of.Outcome == intake.Unknown:
		return "Set its source, tenant or type up in the program that hears. Then let it go through the gate again:", replay("it is set up now")
	case of.Outcome == intake.Malformed:
		return "Look at it with --bodies, and see whether the program looks in the right place. If it did not, and does now, a replay reads it again. Else what it should have said " +
			"can be learned only from its source: let that send it again, or wait for the next delivery about the object or the next reconciliation.", ""
	case e != nil && (e.Owing() || len(e.Parked) > 0):
		return soon(e, d.now()), ""
	}
	for i := range works {
		if w := &works[i]; w.Status == saga.Review {
			return fmt.Sprintf("Nothing is left to do with what was heard. Its work is in review (%s) and waits for a person:", w.Reason), d.show(w.ID)
		}
	}
	return "Nothing: the object is as its source last told. Replaying the delivery is safe, and changes nothing that is newer.", ""
}

// soon says when what is owed to an object is done, by itself.
func soon(e *intake.Entry, now time.Time) string {
	words := Either(e.Owing(), "What is owed to the object is done by itself",
		"Changes of the object wait for one that has not come; unless it comes, its source is asked instead")
	const late = time.Minute // processes that hear look every second
	switch {
	case e.Holder != "" && e.Until.After(now):
		return words + "; it is being worked on. Nothing to do."
	case !e.Due.IsZero() && now.Sub(e.Due) > late:
		return words + fmt.Sprintf("; that is overdue since %s. See that a process runs that hears its source.", iso(e.Due))
	case e.Due.After(now):
		return words + fmt.Sprintf(" at %s. Nothing to do.", iso(e.Due))
	}
	return words + " as soon as a process that hears looks. Nothing to do."
}

// ReplayIn says which deliveries go through the gate again.
type ReplayIn struct {
	Numbers []int64 `json:"-" flag:"-"`
	Deliveries
	By
	DryRun bool `json:"dry-run,omitempty" doc:"say what would be replayed and change nothing"`
}

// Replayed is what became of a replay.
type Replayed struct {
	Deliveries   int                        `json:"deliveries"`   // selected
	Objects      int                        `json:"objects"`      // that they are about
	Dispositions map[intake.Disposition]int `json:"dispositions"` // an object: how many had which; "": none yet
	Actor        string                     `json:"actor"`
	Reason       string                     `json:"reason"`
	DryRun       bool                       `json:"dryRun"`
	Replayed     int                        `json:"replayed"`
}

// Replay has deliveries go through the gate again.
func (d *Desk) Replay(ctx context.Context, in *ReplayIn) (*Replayed, error) {
	f, wrong := in.filter(d.now())
	f.Numbers = in.Numbers
	if wrong = append(wrong, in.By.faults()...); len(in.Numbers) == 0 && in.Deliveries == (Deliveries{}) {
		wrong = append(wrong, "say which: numbers of deliveries, --object, --source, --disposition, --since or --until")
	}
	if err := Usage("try: amends inbox replay --help", wrong...); err != nil {
		return nil, err
	}
	out := Replayed{Actor: in.Actor, Reason: in.Reason, DryRun: in.DryRun}
	err := d.census(ctx, f, &out)
	if err == nil && !in.DryRun {
		out.Replayed, err = d.db.Replay(ctx, f, fmt.Sprintf("replayed by %s: %s", in.Actor, in.Reason))
	}
	return answer(out, err)
}

// census counts what is selected. A number that is not there is a mistake: nothing is replayed
// then.
func (d *Desk) census(ctx context.Context, f intake.DeliveryFilter, out *Replayed) error {
	const many = 200 // they come with their bodies
	f.Limit = many
	objects, found := map[intake.Object]bool{}, map[int64]bool{}
	out.Dispositions = map[intake.Disposition]int{}
	for {
		ds, err := d.db.Deliveries(ctx, f)
		if err != nil {
			return err
		}
		for i := range ds {
			objects[ds[i].Object], found[ds[i].Number] = true, len(f.Numbers) > 0
			out.Dispositions[ds[i].Outcome]++
		}
		out.Deliveries += len(ds)
		if len(ds) < many {
			break
		}
		f.Before = ds[many-1].Number
	}
	out.Objects = len(objects)
	var missing []string
	for _, n := range f.Numbers {
		if name := strconv.FormatInt(n, 10); !found[n] && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &Failure{
		Code: NotFound, What: "there is no such delivery: " + strings.Join(missing, ", "),
		Stands: "nothing was replayed; it never was, is older than what is kept, or another flag leaves it out", Next: "look with: amends inbox list",
	}
}

// Judged lists dispositions with their number, the most frequent first.
func (r *Replayed) Judged() string {
	names := slices.SortedFunc(maps.Keys(r.Dispositions), func(x, y intake.Disposition) int {
		return cmp.Or(r.Dispositions[y]-r.Dispositions[x], strings.Compare(string(x), string(y)))
	})
	return strings.Join(docs(names, func(v *intake.Disposition) string {
		return fmt.Sprintf("%d %s", r.Dispositions[*v], cmp.Or(string(*v), "not yet judged"))
	}), ", ")
}

// HoldIn is an act on the withdrawals of a source that are held.
type HoldIn struct {
	Source string `path:"source"`
	By
	DryRun bool `json:"dry-run,omitempty" doc:"say how many are held and change nothing"`
}

// EndedHold is what became of withdrawals that were held.
type EndedHold struct {
	Source      string `json:"source"`
	Act         string `json:"act"`         // release, drop
	Withdrawals int64  `json:"withdrawals"` // that were held; 0: nothing was to do
	Actor       string `json:"actor"`
	Reason      string `json:"reason"`
	DryRun      bool   `json:"dryRun"`
	Stored      bool   `json:"stored"`
}

// LetThrough lets the withdrawals of a source through that are held.
func (d *Desk) LetThrough(ctx context.Context, in *HoldIn) (*EndedHold, error) {
	return d.endHold(ctx, in, intake.ActRelease)
}

// Drop drops the withdrawals of a source that are held.
func (d *Desk) Drop(ctx context.Context, in *HoldIn) (*EndedHold, error) {
	return d.endHold(ctx, in, intake.ActDrop)
}

func (d *Desk) endHold(ctx context.Context, in *HoldIn, act string) (*EndedHold, error) {
	if err := Usage("try: amends inbox "+act+" --help", append(named(in.Source, "source: amends inbox "+act+" SOURCE"), in.By.faults()...)...); err != nil {
		return nil, err
	}
	out := EndedHold{Source: in.Source, Act: act, Actor: in.Actor, Reason: in.Reason, DryRun: in.DryRun}
	if !in.DryRun {
		n, err := d.db.EndHold(ctx, in.Source, act, in.actor())
		out.Withdrawals, out.Stored = n, n > 0
		return answer(out, err)
	}
	all, err := d.db.Holdings(ctx)
	if h := First(all, func(h *intake.Holding) bool { return h.Source == in.Source }); h != nil {
		out.Withdrawals = h.Count
	}
	return answer(out, err)
}

// Then says what follows.
func (e *EndedHold) Then() string {
	switch {
	case e.DryRun:
		return "Dry run: nothing was changed."
	case e.Act == intake.ActDrop:
		return "Dropped: nothing of them is undone."
	}
	return "Released: they are decided once more, and undone, as soon as a process that hears runs."
}
