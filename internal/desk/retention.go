package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/retention"
	"github.com/amends-dev/amends/saga"
)

// Keep is how long something is kept, as people write it: 90d, 2y, 36h, or forever.
type Keep time.Duration

// units are those that a duration of Go has not.
var units = []struct {
	letter string
	is     time.Duration
}{{"y", 365 * 24 * time.Hour}, {"d", 24 * time.Hour}}

const forever = "forever"

// UnmarshalText reads it.
func (k *Keep) UnmarshalText(text []byte) error {
	if string(text) == forever {
		*k = 0
		return nil
	}
	for _, unit := range units {
		if number, ok := strings.CutSuffix(string(text), unit.letter); ok {
			if n, err := strconv.Atoi(number); err == nil && n > 0 && n <= 100*366 {
				*k = Keep(time.Duration(n) * unit.is)
				return nil
			}
		}
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is no time for which something is kept, such as 90d, 2y, 36h or forever", text)
	}
	*k = Keep(d)
	return nil
}

// MarshalText is the text.
func (k Keep) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func (k Keep) String() string {
	if k == 0 {
		return forever
	}
	for _, unit := range units {
		if n := time.Duration(k) / unit.is; time.Duration(k)%unit.is == 0 {
			return strconv.FormatInt(int64(n), 10) + unit.letter
		}
	}
	return time.Duration(k).String()
}

// Retained is what went, or would go.
type Retained struct {
	At       *time.Time `json:"at"` // the time that counts: the ledger's clock, or --at
	DryRun   bool       `json:"dryRun"`
	Policies []Policy   `json:"policies"` // by saga
	Goes     []Gone     `json:"goes"`
	Kept     int        `json:"kept"`    // due, and left as they are: held by a person, to be erased first, or moved meanwhile
	Damaged  int        `json:"damaged"` // due, and not to be read: amends check
	Erased   int        `json:"erased"`  // a person had them erased before they ended, or while they were held: amends erase
}

// Policy is how long what is kept of a saga's instances, since something was last recorded of one that has ended.
type Policy struct {
	Saga    string `json:"saga"`    // "": all that do not say it
	Bodies  Keep   `json:"bodies"`  // inputs, results, messages
	Records Keep   `json:"records"` // the history
	Key     Keep   `json:"key"`     // the work id: a start behind that is a new instance
	By      string `json:"by"`      // saga: its definition says it; ledger: amends retention set; "": nothing is set, and nothing goes
}

// Words are the policy in a line.
func (p *Policy) Words() string {
	if p.By == "" {
		return "nothing is set: all is kept"
	}
	return fmt.Sprintf("bodies %s, records %s, keys %s", p.Bodies, p.Records, p.Key)
}

// Gone counts instances of a saga that lose the same.
type Gone struct {
	Saga   string     `json:"saga"`
	What   string     `json:"what"` // bodies, records or keys
	Works  int        `json:"works"`
	Bytes  int64      `json:"bytes,string"` // about
	Oldest *time.Time `json:"oldestAt"`     // when something was last recorded of the oldest
}

// Size is how many bytes go, for people.
func (g *Gone) Size() string {
	size, unit := float64(g.Bytes), "B"
	for _, next := range []string{"KB", "MB", "GB", "TB"} {
		if size < 1000 {
			break
		}
		size, unit = size/1000, next
	}
	return strings.TrimSuffix(strconv.FormatFloat(size, 'f', 1, 64), ".0") + " " + unit
}

func policyOf(p *retention.Policy) Policy {
	by := When(p.Set, Either(p.Own, "saga", "ledger"))
	return Policy{p.Saga, Keep(p.Bodies), Keep(p.Records), Keep(p.Key), by}
}

func retained(r *retention.Report, dry bool) *Retained {
	return &Retained{
		At: utc(r.At), DryRun: dry, Policies: docs(r.Policies, policyOf), Kept: r.Kept, Damaged: r.Damaged, Erased: r.Erased,
		Goes: docs(r.Lines, func(l *retention.Line) Gone { return Gone{l.Saga, l.What, l.Works, l.Bytes, utc(l.Oldest)} }),
	}
}

// RetentionPlanIn says by when.
type RetentionPlanIn struct {
	At string `query:"at" doc:"what would go by this time (default: now)"`
}

// PlanRetention says what would go.
func (d *Desk) PlanRetention(ctx context.Context, in *RetentionPlanIn) (*Retained, error) {
	at, err := PointInTime(in.At, d.now())
	if err != nil {
		return nil, Usage("", "--at "+err.Error())
	}
	r, err := retention.Plan(ctx, d.db, at)
	if err != nil {
		return nil, err
	}
	return retained(&r, true), nil
}

// RetentionRunIn says how fast.
type RetentionRunIn struct {
	PerSecond int `json:"-" flag:"rate" doc:"instances a second, at most"`
	By
}

// Defaults is what is meant where nothing is said.
func (in *RetentionRunIn) Defaults() { in.PerSecond = 200 }

// RunRetention lets go of what is due, and puts on record who had it go.
func (d *Desk) RunRetention(ctx context.Context, in *RetentionRunIn) (*Retained, error) {
	wrong := in.By.faults()
	wrong.If(in.PerSecond < 1, "--rate is at least 1")
	if err := Usage("", wrong...); err != nil {
		return nil, err
	}
	r, err := retention.Run(ctx, d.db, &retention.Options{PerSecond: in.PerSecond})
	if len(r.Lines) > 0 || r.Erased > 0 {
		err = errors.Join(err, d.db.Did(context.WithoutCancel(ctx), ledger.DeedRetention, r.String(), in.actor()))
	}
	if err != nil {
		return nil, err
	}
	return retained(&r, false), nil
}

// RetentionSetIn is how long what is kept of sagas that do not say it.
type RetentionSetIn struct {
	Bodies  Keep `json:"bodies,omitempty" doc:"inputs, results and messages, such as 90d"`
	Records Keep `json:"records,omitempty" doc:"the history, such as 2y"`
	Key     Keep `json:"key,omitempty" doc:"work id, status and external ids: a start behind that is a new instance"`
	By
}

// SetRetention stores it. All three forever: nothing goes.
func (d *Desk) SetRetention(ctx context.Context, in *RetentionSetIn) (*Policy, error) {
	r := program.Retention{Bodies: program.Duration(in.Bodies), Records: program.Duration(in.Records), Key: program.Duration(in.Key)}
	if err := Usage("", append(in.By.faults(), r.Faults()...)...); err != nil {
		return nil, err
	}
	var body json.RawMessage
	if r != (program.Retention{}) {
		body, _ = json.Marshal(r) //nolint:errchkjson // texts always encode
	}
	if err := d.setControl(ctx, ledger.ControlRetention, retention.DefaultName, body, in.actor()); err != nil {
		return nil, err
	}
	return &Policy{"", in.Bodies, in.Records, in.Key, When(body != nil, "ledger")}, nil
}

// HoldWorkIn names a work of which nothing goes.
type HoldWorkIn struct {
	Which
	Lift bool `json:"lift,omitempty" doc:"it is not held any more"`
	By
}

// HeldWork is one, or is not any more.
type HeldWork struct {
	Saga   string `json:"saga"`
	WorkID string `json:"workId"`
	Held   bool   `json:"held"`
	// Left is what was there of it when it was held: all, records (its bodies have gone), or remains.
	Left ledger.Left `json:"left"`
}

// HoldWork has retention let go of nothing of a work.
func (d *Desk) HoldWork(ctx context.Context, in *HoldWorkIn) (*HeldWork, error) {
	if err := Usage("", in.By.faults()...); err != nil {
		return nil, err
	}
	head, err := d.find(ctx, &in.Which)
	if err != nil {
		return nil, err
	}
	var body json.RawMessage
	if !in.Lift {
		body = json.RawMessage("{}")
	}
	if err := d.setControl(ctx, ledger.ControlHold, ledger.HoldName(head.ID), body, in.actor()); err != nil {
		return nil, err
	}
	head, err = d.find(ctx, &in.Which)
	if errors.Is(err, ledger.ErrNotFound) { // a retention was at it
		return nil, &Failure{Code: NotFound, What: "its key went just now, by retention", Stands: "the hold is stored, for whatever is started under that id", Next: "take it back with --lift"}
	}
	if err != nil {
		return nil, err
	}
	return &HeldWork{head.ID.Saga, head.ID.Work, !in.Lift, head.Left()}, nil
}

// EraseIn says whose data is erased: a subject's, or a work's.
type EraseIn struct {
	Work    string `path:"work"`
	Saga    string `json:"saga,omitempty" doc:"only of this saga"`
	Subject string `json:"subject,omitempty" doc:"all works of a subject, as saga.Subject names it: customer:8821"`
	DryRun  bool   `json:"dry-run,omitempty" doc:"say what would be erased and change nothing"`
	By
}

// Erased is what was erased, or would be.
type Erased struct {
	DryRun bool         `json:"dryRun"`
	Works  []ErasedWork `json:"works"`
	Named  int          `json:"named"` // erased but for their ids, which go with the next run of retention: a transaction has been open in the database since before
}

// ErasedWork is a work.
type ErasedWork struct {
	Saga     string   `json:"saga"`
	WorkID   string   `json:"workId"`   // as it was
	ErasedAs string   `json:"erasedAs"` // its id from then on; "": it was left
	Records  int      `json:"records"`
	Objects  []string `json:"objects"` // of webhooks, whose deliveries go with it
	Left     string   `json:"left"`    // why it, or an object of it, was left
	Later    bool     `json:"later"`   // retention erases it once that is over
}

// Outcome is what became of it, in a line.
func (w *ErasedWork) Outcome() string {
	switch {
	case w.ErasedAs == "" && w.Later:
		return "later: " + w.Left
	case w.ErasedAs == "":
		return "left: " + w.Left
	default:
		return joinedBy("; ", w.ErasedAs, w.Left)
	}
}

// Erase erases what is kept of a subject, or of a work.
func (d *Desk) Erase(ctx context.Context, in *EraseIn) (*Erased, error) {
	var wrong Wrong
	if !in.DryRun {
		wrong = in.By.faults()
	}
	wrong.If((in.Work == "") == (in.Subject == ""), "say what: a work id, or --subject SUBJECT")
	if err := Usage("try: amends erase --help", wrong...); err != nil {
		return nil, err
	}
	e, err := retention.Erase(ctx, d.db, retention.Erasure{Subject: in.Subject, Work: in.Work, Saga: in.Saga, DryRun: in.DryRun, By: in.actor()})
	switch {
	case err != nil && len(e.Works) == 0:
		return nil, err
	case len(e.Works) == 0 && in.Work != "":
		w := Which{Work: in.Work, Saga: in.Saga}
		return nil, w.unknown()
	}
	return &Erased{DryRun: in.DryRun, Named: e.Named, Works: docs(e.Works, func(w *retention.ErasedWork) ErasedWork {
		return ErasedWork{w.ID.Saga, w.ID.Work, w.As, w.Records, append([]string{}, w.Objects...), w.Left, w.Later}
	})}, err
}

// setControl stores what a person wants, over whatever stands.
func (d *Desk) setControl(ctx context.Context, kind ledger.ControlKind, name string, body json.RawMessage, by saga.Actor) error {
	for {
		all, _, err := d.db.Controls(ctx)
		if err != nil {
			return err
		}
		c := ledger.Control{Kind: kind, Name: name, Body: body, Actor: by.Name, Reason: by.Reason, Nonce: rand.Int64()}
		if i := slices.IndexFunc(all, func(is ledger.Control) bool { return is.Kind == kind && is.Name == name }); i >= 0 {
			c.Version = all[i].Version
		}
		if _, err = d.db.SetControl(ctx, 0, c); !errors.Is(err, ledger.ErrChanged) {
			return err
		}
	}
}

// memory is how long the ledger knows what it did, for status.
func (d *Desk) memory(ctx context.Context) (Policy, error) {
	r, set, err := retention.Default(ctx, d.db)
	return policyOf(&retention.Policy{Retention: r, Set: set}), err
}
