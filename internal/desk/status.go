package desk

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/saga"
)

// StatusIn says what counts as still.
type StatusIn struct {
	Still Duration `query:"still" doc:"a live work that has not moved for this long is a finding"`
}

// Defaults is what is meant where nothing is said.
func (in *StatusIn) Defaults() { in.Still = Duration(finding.Still) }

// Status is which processes run, and what does not move.
type Status struct {
	At       *time.Time        `json:"at"` // the ledger's clock
	Sessions []Session         `json:"sessions"`
	Unknown  []Backlog         `json:"unknown"` // definitions that no live session knows
	Oldest   []Head            `json:"oldest"`  // the live works whose latest record is oldest, held or overdue
	Findings []finding.Finding `json:"findings"`
	Review   int               `json:"review"` // works in review, and paused one by one: they wait for a person; at most 1000 of each are counted
	Paused   int               `json:"paused"`
	Waiting  int               `json:"waiting"`  // for a time, an answer or a decision; at most 1000 are counted
	Retrying int               `json:"retrying"` // after a failure, by itself; at most 1000 are counted
	Keeps    Policy            `json:"keeps"`    // how long what is kept of sagas whose definitions do not say it
	Sealed   bool              `json:"sealed"`   // bodies are stored under keys: processes need AMENDS_KEYS or store.Options.Keys
	ToErase  int               `json:"toErase"`  // works that a person had erased, and that had not ended then or were held; at most 1000 are counted
}

// Session is a process that runs.
type Session struct {
	Session string       `json:"session"`
	Label   string       `json:"label"`
	Opened  *time.Time   `json:"openedAt"`
	Renewed *time.Time   `json:"renewedAt"`
	Expires *time.Time   `json:"expiresAt"` // the end of its lease
	Holds   int64        `json:"holds"`     // works
	Witness string       `json:"witness"`   // kept, new or temporary; else why it has none
	Knows   []Definition `json:"knows"`     // the definitions that it runs
}

// Definition is a version of a saga.
type Definition struct {
	Saga    string `json:"saga"`
	Version int    `json:"version"`
}

// Backlog is what waits for a definition that no live session knows.
type Backlog struct {
	Definition
	Ended  bool       `json:"ended"`       // they have a signal to be read: a newer version will do
	Works  int64      `json:"works"`       // at most 1000 are counted
	Oldest *time.Time `json:"oldestDueAt"` // of those
}

// Status reads which processes run and what they know, and what does not move.
func (d *Desk) Status(ctx context.Context, in *StatusIn) (*Status, error) {
	if in.Still <= 0 {
		return nil, Usage("", "--still is longer than nothing")
	}
	f, err := finding.Read(ctx, d.db)
	if err != nil {
		return nil, err
	}
	k, o := knowledgeOf(f.Sessions), &f.Overview
	s := &Status{
		At: utc(o.At), Findings: f.All(time.Duration(in.Still)), Review: len(f.Review), Paused: len(f.Paused), Sealed: o.Sealed,
		Oldest: docs(o.Oldest, k.head),
		Unknown: docs(o.Unknown, func(b *ledger.Backlog) Backlog {
			return Backlog{Definition{b.Saga, b.Version}, b.Ended, b.Works, utc(b.Oldest)}
		}),
		Sessions: docs(o.Sessions, func(s *ledger.Session) Session {
			return Session{
				Session: s.Token.String(), Label: s.Label, Opened: utc(s.Opened), Renewed: utc(s.Renewed), Expires: utc(s.Expires), Holds: s.Holds,
				Witness: s.Witness, Knows: docs(s.Knows, func(v *ledger.Version) Definition { return Definition{v.Saga, v.Version} }),
			}
		}),
	}
	for n, f := range map[*int]ledger.Filter{&s.Waiting: {Status: saga.Waiting}, &s.Retrying: {Status: saga.Retrying}, &s.ToErase: {Tag: ledger.ToErase}} {
		f.Limit = ledger.MaxBacklog
		heads, err := ledger.First(ctx, d.db, f)
		if err != nil {
			return nil, err
		}
		*n = len(heads)
	}
	s.Keeps, err = d.memory(ctx)
	return s, err
}

// StatsIn narrows the statistics.
type StatsIn struct {
	Saga string `query:"saga" doc:"works of this saga only"`
}

// Total is how many works of a saga stand where.
type Total struct {
	Saga   string      `json:"saga"`
	Status saga.Status `json:"status"`
	Reason saga.Reason `json:"reason"` // of a review
	Works  int64       `json:"works,string"`
	Oldest *time.Time  `json:"oldestDueAt"` // since when the first of them is due; null: none is
}

// Stats counts all works.
func (d *Desk) Stats(ctx context.Context, in *StatsIn) (*All[Total], error) {
	totals, err := d.db.Totals(ctx)
	totals = slices.DeleteFunc(totals, func(t ledger.Total) bool { return in.Saga != "" && t.Saga != in.Saga })
	return answer(All[Total]{docs(totals, func(t *ledger.Total) Total {
		return Total{t.Saga, t.Status, t.Reason, t.Works, utc(t.OldestDue)}
	})}, err)
}

// Alarm is the finding that something does not move, or nil.
func (s *Status) Alarm() error {
	return alarm(len(s.Findings), "something does not move", "read the "+count(len(s.Findings), "finding"))
}

// Runs lists definitions: order-to-invoice 1, 2; order-to-parcel 3.
func (s *Session) Runs() string {
	vs := slices.SortedFunc(slices.Values(s.Knows), func(a, b Definition) int {
		return cmp.Or(strings.Compare(a.Saga, b.Saga), cmp.Compare(a.Version, b.Version))
	})
	words := ""
	for i, v := range vs {
		again := i > 0 && v.Saga == vs[i-1].Saga
		words = Either(again, fmt.Sprintf("%s, %d", words, v.Version), joined(words, fmt.Sprintf("%s %d", v.Saga, v.Version)))
	}
	return cmp.Or(words, "nothing: it runs no sagas")
}

// CheckIn narrows a check.
type CheckIn struct {
	Work   string `path:"work"`
	Saga   string `query:"saga" doc:"works of this saga only"`
	Prefix string `query:"prefix" doc:"work ids that begin with this"`
	// Progress is told how far it has come; nil: nothing is.
	Progress func(works, records int64, findings int) `flag:"-"`
}

// Report is what a check found.
type Report struct {
	Sound    bool           `json:"sound"`
	Works    int64          `json:"works"`
	Records  int64          `json:"records"`
	Acts     int64          `json:"acts"`   // of people; they are read where neither WORK nor flags narrow it
	Moving   int64          `json:"moving"` // works that moved all the while, whose head was not compared
	Findings []CheckFinding `json:"findings"`
}

// CheckFinding is one thing that is not as the rules have it.
type CheckFinding struct {
	Saga   string `json:"saga"`
	WorkID string `json:"workId"`
	Number int64  `json:"number,string"`
	Seq    int64  `json:"seq"` // 0: about the head, or the work as a whole
	Act    int64  `json:"act"` // its number, where it is about an act: then it is about no work
	What   string `json:"what"`
	Do     string `json:"do"`
	Line   int64  `json:"line,omitempty"` // of an export, where one is verified

	Where string `json:"-"`
}

// Check verifies every chain and every head.
func (d *Desk) Check(ctx context.Context, in *CheckIn) (*Report, error) {
	r, err := ledger.Check(ctx, d.db, &ledger.CheckOptions{Filter: ledger.Filter{Work: in.Work, Saga: in.Saga, Prefix: in.Prefix}, Progress: func(r ledger.Report) {
		if in.Progress != nil {
			in.Progress(r.Works, r.Records, len(r.Findings))
		}
	}})
	switch {
	case err != nil:
		return nil, err
	case r.Works == 0 && in.Work != "":
		return nil, (&Which{Work: in.Work, Saga: in.Saga}).unknown()
	}
	return reportOf(&r), nil
}

func reportOf(r *ledger.Report) *Report {
	return &Report{len(r.Findings) == 0, r.Works, r.Records, r.Acts, r.Moving, docs(r.Findings, func(f *ledger.Finding) CheckFinding {
		return CheckFinding{Saga: f.ID.Saga, WorkID: f.ID.Work, Number: f.Number, Seq: f.Seq, Act: f.Act, What: f.What, Do: f.Do, Where: f.Where()}
	})}
}

// Alarm is the finding that a ledger is not sound, or nil.
func (r *Report) Alarm() error {
	n, in := len(r.Findings), count(int(r.Works), "work")+When(r.Acts > 0, " and "+count(int(r.Acts), "act"))
	return alarm(n, fmt.Sprintf("the ledger is not sound: %s in %s", count(n, "finding"), in),
		"keep a copy of the database before anything else is done to it")
}

// CaughtUp is how many works and leases were made due in their own time.
type CaughtUp struct {
	Works    int64 `json:"works"`    // that were made due
	Sessions int64 `json:"sessions"` // whose leases end in their own time
}

// CatchUp makes due what waits for a clock that went back.
func (d *Desk) CatchUp(ctx context.Context, _ *Nothing) (*CaughtUp, error) {
	works, sessions, err := d.db.CatchUp(ctx)
	return answer(CaughtUp{works, sessions}, err)
}

// RecoverIn says what became of the database.
type RecoverIn struct {
	Restored    bool `json:"-" flag:"restored" doc:"it has forgotten what was done since a backup"`
	NothingLost bool `json:"-" flag:"nothing-lost" doc:"it has everything"`
	DryRun      bool `json:"-" flag:"dry-run" doc:"say what follows, and change nothing"`
	By
}

// Recovered is what a recovery is about.
type Recovered struct {
	Act       string     `json:"act"` // restored, or nothing-lost
	DryRun    bool       `json:"dryRun"`
	LastAlive *time.Time `json:"lastAliveAt"` // of a process, as far as the ledger knows
	Sessions  int64      `json:"sessions"`    // opened on another database
	Works     []Recovers `json:"works"`       // that have not ended, by definition
}

// Recovers are the works of a definition.
type Recovers struct {
	Definition
	Works int64    `json:"works"`
	Asked []string `json:"asked"` // the steps of which a person is asked, where they are not done
}

// Words say how many, and of what a person is asked.
func (r *Recovers) Words() string {
	return fmt.Sprintf("%s: %s", definition(r.Saga, r.Version, false), count(int(r.Works), "work")) +
		With("; where it is not done a person is asked about ", strings.Join(r.Asked, ", "))
}

// Recover says what became of the database.
func (d *Desk) Recover(ctx context.Context, in *RecoverIn) (*Recovered, error) {
	if in.DryRun {
		in.Reason = cmp.Or(in.Reason, "a dry run")
	}
	wrong := in.By.faults()
	wrong.If(in.Restored == in.NothingLost, "say --restored, or --nothing-lost")
	if err := Usage("try: amends recover --help", wrong...); err != nil {
		return nil, err
	}
	done, err := d.db.Recover(ctx, ledger.Recovery{NothingLost: in.NothingLost, DryRun: in.DryRun, By: in.actor()})
	if err != nil {
		return nil, err
	}
	k, err := d.whoKnows(ctx, false)
	if err != nil {
		return nil, err
	}
	out := &Recovered{Act: Either(in.NothingLost, "nothing-lost", "restored"), DryRun: in.DryRun, LastAlive: utc(done.Heard), Sessions: done.Moved, Works: []Recovers{}}
	for _, w := range done.Works {
		r := Recovers{Definition{w.Saga, w.Version}, w.Works, []string{}}
		if spec := k.specOf(w.Saga, w.Version); spec != nil && !in.NothingLost {
			for _, s := range spec.Steps {
				if s.Repeat == program.RepeatAtMostOnce {
					r.Asked = append(r.Asked, s.Name)
				}
			}
		}
		out.Works = append(out.Works, r)
	}
	return out, nil
}

// Version is which amends this is.
type Version struct {
	Version  string `json:"version"` // "(devel)" when it was not built from a release
	Commit   string `json:"commit"`
	Date     string `json:"date"`     // of the commit
	Modified bool   `json:"modified"` // built from a tree with changes of its own
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Schema   struct {
		Postgres int64 `json:"postgres"`
		SQLite   int64 `json:"sqlite"`
	} `json:"schema"`
}

// ThisVersion is what was built.
func ThisVersion() Version {
	v := Version{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	v.Schema.Postgres, v.Schema.SQLite = migrations.Latest(migrations.Postgres), migrations.Latest(migrations.SQLite)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	built := map[string]string{}
	for _, s := range info.Settings {
		built[s.Key] = s.Value
	}
	v.Version, v.Commit, v.Modified = cmp.Or(info.Main.Version, v.Version), built["vcs.revision"], built["vcs.modified"] == "true"
	if t, err := time.Parse(time.RFC3339, built["vcs.time"]); err == nil {
		v.Date = iso(t)
	}
	return v
}

// Version is [ThisVersion].
func (*Desk) Version(context.Context, *Nothing) (*Version, error) {
	return answer(ThisVersion(), nil)
}
