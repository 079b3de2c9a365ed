package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Ledger is everything that a coordinator needs of a store, in five parts. It stores what the
// machine decided and never derives a status from an event. Every method is safe for concurrent use
// and for repeating after an error: a method that returns an error may or may not have taken
// effect, and calling it again with the same arguments settles which.
type Ledger interface {
	Chains
	Leases
	Catalogue
	Controls
	Mail
	Requests
	Retention

	// Limits says what the ledger can bear and how far it can be trusted. It does not change while
	// the ledger is open.
	Limits() Limits

	// Close releases connections and files. It does not bury sessions.
	Close() error
}

// Limits is what a ledger can bear. A number that is 0 is no limit.
type Limits struct {
	Records int // that one Append carries
	Bytes   int // of the bodies and snapshots in one Append, beside its first record
	Record  int // bytes of one record; a larger one is Invalid

	// Skew is the largest difference between the clocks of any two nodes that may answer: 0 where
	// one server does. A lease that one node granted is over when every node's clock is behind its
	// end: Claim buries a session Skew later than the clock says, and a process stops trusting its
	// lease Skew earlier.
	Skew time.Duration

	// Forgets: a fail-over may forget records that were acknowledged.
	Forgets bool
}

// Chains are the records of each work, and what others have to say to it.
type Chains interface {
	// Append stores records, many works per call, at most one record per work, and answers each at
	// its own index. t is the session on whose lease records that arm something are judged. An
	// error says that nothing is known of any of them: append the very same entries again until
	// there is an answer. Only [ErrDatabaseChanged] is final: the session is void. With the answer the list is the caller's again.
	Append(ctx context.Context, t machine.Token, entries []Entry) ([]Answer, error)

	// Load returns the chains of works, each from its latest snapshot on, with the signals posted
	// to the work that no record has consumed. Works that do not exist are left out.
	Load(ctx context.Context, ids []saga.ID) ([]Chain, error)

	// Post inserts a signal, whichever session holds the work, and makes the work due at the latest
	// now, also one that has ended. One that waits for a destination waits for it no more: a signal
	// reaches a process whatever the destination's state. A signal whose Key the work has already
	// received changes nothing. Signals are numbered within their work, from 1 and without a gap.
	// One with an ID is stored only under that number: when another one has it by then, nothing is
	// stored, and the error matches [ErrChanged]. So who has seen n signals is told of an n+1st.
	// An unknown work matches [ErrNotFound], one whose records have gone [ErrForgotten], a signal that cannot be stored [ErrInvalid].
	Post(ctx context.Context, id saga.ID, s machine.Signal) (Posted, error)
}

// Posted is what a signal that was stored got. It is zero where its key had been received before.
type Posted struct {
	Number int64     // within its work
	At     time.Time // by the ledger's clock
}

// Leases is the schedule of works: the sessions of processes, who holds which work, and when it
// wants attention.
type Leases interface {
	// OpenSession begins a lease of ttl for a new process under a fresh random token, and reads who
	// the database is. label names the process for people (host, pid), knows are the definitions it
	// can run; a process that only starts works knows none. A schema that is newer than this
	// program answers [ErrSchema].
	OpenSession(ctx context.Context, ttl time.Duration, label string, knows []Version) (Lease, error)

	// Renew extends the session's lease to r.TTL from now, by the database's clock, and stores what
	// the process knows now. A session that is dead or has expired is not revived: the error
	// matches [ErrSessionDead]. A database that is no longer the one the session was opened on
	// answers [ErrDatabaseChanged], a schema that has become newer than this program [ErrSchema].
	Renew(ctx context.Context, t machine.Token, r Renewal) (Lease, error)

	// Bury marks session t dead, so that its works can be claimed at once. Burying a dead session
	// is not an error. A process calls it on its own session when it stops.
	Bury(ctx context.Context, t machine.Token) error

	// Claim buries sessions that expired, [Limits].Skew after their end, and releases what dead
	// ones held, then gives session t up to c.Limit works that are due and known to it, in the
	// order that [Claim] says. It returns them together with the works t already holds that have an
	// unread signal. A session that is not live claims nothing: [ErrSessionDead].
	//
	// It may give fewer works than there are, never one that another session holds.
	Claim(ctx context.Context, t machine.Token, c Claim) (Claimed, error)

	// GiveBack releases works that t holds on record. A live work becomes due at the time the
	// return says, and waits for the destination it names; with an unread signal it is due at once
	// and waits for nothing. One that is parked or has ended is due only for an unread signal, at
	// once. A live work that is released already becomes due at that time when it would be due
	// later, and waits for what it waited for before, whatever the return says. Others are left
	// alone; session 0 holds none. A destination's name that cannot be stored matches [ErrInvalid],
	// and nothing is given back.
	GiveBack(ctx context.Context, t machine.Token, works []Return) error

	// CatchUp mends what a clock that ran ahead left behind, once it is right again: released works
	// that [Overview] calls ahead become due now, whatever they wait for besides, and the lease of
	// a session renewed later than the clock says ends after its own length from now. It answers
	// how many works and sessions that were.
	CatchUp(ctx context.Context) (works, sessions int64, err error)
}

// Catalogue is what the ledger knows beside its chains and what people read of it. Reading needs no
// session. It reads from the primary today; only what Describe compares has to be the newest.
type Catalogue interface {
	// Describe stores a definition, or compares its structure with what is stored under the same
	// name and version: [ErrDefinitionChanged] when they differ. What may be tuned under one version is stored anew.
	Describe(ctx context.Context, spec *program.Spec) error

	// Count stores how many blocked duplicates a counter has seen of each work and source since it
	// was drawn: not how many more. The greatest total counts, so a call that comes again, or late,
	// counts nothing twice. A source that is longer than [MaxText] is cut. A counter that was
	// silent for longer than [CounterSilence] is folded into one with all others of its work and
	// source, and must not speak again. By what a call really adds the day grows, see [BlockedDay].
	Count(ctx context.Context, c Counter, totals []Duplicate) error

	// Blocked adds n to what a layer blocked of a source today. It is about nothing else, so a call that comes again counts again.
	Blocked(ctx context.Context, by, source string, n int64) error

	// List returns a page of the heads that f selects, at most f.Limit of them, behind the page
	// that told f.After. It never reads the whole ledger: a page may end, with fewer heads or none,
	// because enough was looked at that did not match. A cursor of another listing matches
	// [ErrCursor].
	List(ctx context.Context, f Filter) (Page, error)

	// AtRest returns those of the works that have ended, are in review or paused, in any order. It is one
	// statement, however many works are asked about.
	AtRest(ctx context.Context, ids []saga.ID) ([]saga.ID, error)

	// History returns the whole chain of a work from its first record, whatever snapshots it holds.
	// An unknown work matches [ErrNotFound].
	History(ctx context.Context, id saga.ID) ([]machine.Record, error)

	// Signals returns every signal posted to a work, oldest first.
	Signals(ctx context.Context, id saga.ID) ([]machine.Signal, error)

	// Duplicates returns how many duplicates of each work and source were blocked, by all counters,
	// the most recent first.
	Duplicates(ctx context.Context, f Filter) ([]Duplicate, error)

	// BlockedDays returns how many duplicates were blocked on each day, by day, layer and source,
	// from the day on that since is in; zero: all. What a day counts stays when works and deliveries go.
	BlockedDays(ctx context.Context, since time.Time) ([]BlockedDay, error)

	// Definitions returns every definition the ledger has seen, by name and version.
	Definitions(ctx context.Context) ([]Definition, error)

	// ActChain returns what people did and looked at beside the works, behind number after in the
	// order of being stored, at most limit of them (0: 100), and with it the head of this chain at
	// that moment: number and hash of the last one.
	ActChain(ctx context.Context, after int64, limit int) (acts []Act, head Act, err error)

	// Sessions returns the live sessions, then the dead ones that still hold works; each kind by
	// its opening.
	Sessions(ctx context.Context) ([]Session, error)

	// Overview says what moves and what does not. It is bounded in what it returns, and made to be
	// asked every minute.
	Overview(ctx context.Context) (Overview, error)

	// Totals counts the works of each saga, status and reason, in that order. It reads all
	// instances: ask it every quarter of a minute at most.
	Totals(ctx context.Context) ([]Total, error)
}

// Stirrer is implemented by ledgers by which processes can tell each other that there is something to claim. It saves the time until the
// next poll, and nothing rests on it.
type Stirrer interface {
	// Stir has the other processes look for what there is to claim. It returns at once.
	Stir()
	// Hear calls heard when another process stirs, and when it may have, until ctx ends. Hears reports whether it is told at this moment,
	// as far as is known.
	Hear(ctx context.Context, heard func())
	Hears() bool
}

// TxStarter is implemented by ledgers that live in a database the caller may share.
type TxStarter interface {
	// StartTx inserts head and start record within tx, unheld and due now. It arms nothing. The
	// answer is final only when tx commits. [Exists] is answered without aborting tx.
	StartTx(ctx context.Context, tx Tx, e Entry) (Answer, error)
}

// Tx is a transaction of the caller's on the ledger's database: a *sql.Tx, whatever its driver, or
// a *sqlx.Tx.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Lease is a session's right to arm.
type Lease struct {
	Token    machine.Token
	At       time.Time     // the clock of the node that answered; a record's time is never taken for it
	TTL      time.Duration // granted from At on
	Database string        // the database's identity: system identifier and timeline, or the file's own id
	// Alone: opening proved every other session's process gone (a file lock), and buried them.
	Alone bool
	// Lock is the file by which processes of this host can tell that this one has ended, where a ledger
	// keeps one for each. Unlocked is why it does not.
	Lock     string
	Unlocked error
	// Witness is what is to be said of the session's [Witness]: [WitnessKept], or why not.
	Witness string
	// Stray are works that the session holds on record and that the renewal did not say it has in
	// hand, at most [MaxStray] of them. A claim or a record on its way explains one that is named
	// for the first time.
	Stray []Instance
	// Live are the sessions that are not buried yet, this one included. One that was opened before
	// and is missing is dead for ever.
	Live []machine.Token
	// Controls is the newest version of all controls.
	Controls int64
}

// MaxStray is how many stray works one renewal names.
const MaxStray = 1000

// Renewal is what a process says of itself at each heartbeat.
type Renewal struct {
	TTL    time.Duration
	Knows  []Version // the definitions it can run
	InHand []int64   // the numbers of the works it has in hand
}

// Return is one work that is given back.
type Return struct {
	Number int64     // the ledger's, of the work
	Due    time.Time // when it wants attention; zero: now
	// WaitsFor is the destination that has no room for it now, at most [MaxText] bytes: only a
	// process that has room there claims it. Empty: it waits for nothing but its time.
	WaitsFor string
	// Leaves is when it waits for the destination no longer, and is due; zero: not before its deadline.
	Leaves time.Time
}

// Entry is one record on its way into the ledger, sealed by [machine.Record.Seal].
type Entry struct {
	ID       saga.ID
	Salt     machine.Salt // the instance's: random, brought by its start; the hashes of its records cover it
	Subject  string       // whose data the instance holds, see saga.Subject: it chooses the key that seals; "": none
	Number   int64        // the ledger's number of the work; 0 for a start
	Prev     machine.Hash // hash of the predecessor; zero for a start
	Record   machine.Record
	Schedule *Schedule // nil: neither status, holder nor due time change
	Waits    []Wait    // of the work, findable once the record is stored, as [Mail.Await] makes them
	// Revision is what the work is at once the record is stored. A key that derives from it is not
	// stored, so it must be the one that the chain folds to; what a start and a revision begin with
	// is taken from the record itself.
	Revision string
}

// Schedule says what the work's head must show after the record, beyond what the record itself says
// (status, reason, wait, signals consumed, snapshot).
type Schedule struct {
	// Hold: the writer keeps the work in hand and wakes it by itself. Otherwise a live work is
	// released and due at the record's time plus its wait. No record leaves a parked or terminal
	// work held, but [saga.ReasonHung]: it is in hand, and goes on when its session is over.
	Hold bool

	// Class is where the work stands in the order of claims from now on, when it is released and
	// when its holder dies.
	Class Class
}

// Class is the first criterion in the order of claims: a lower one is claimed first.
type Class int8

// The classes.
const (
	ClassCompensating Class = iota // something is to be undone
	ClassBegun                     // something may have been sent
	ClassUnbegun                   // nothing was sent yet
)

// Result is the ledger's answer to one entry.
type Result string

// The answers.
const (
	Appended Result = "appended" // stored now
	Mine     Result = "mine"     // this very record was there already: the answer to an ambiguous commit
	Stale    Result = "stale"    // another record is at this place; load the chain and decide again
	Missing  Result = "missing"  // the predecessor is gone: the database went back; the session is void
	NoLease  Result = "no-lease" // the record arms something and the session is not live; nothing was stored
	Exists   Result = "exists"   // start only: the work is known
	Invalid  Result = "invalid"  // the database refuses a value of this record; the others were stored
	Blocked  Result = "blocked"  // a transaction that is still open starts the same work, or has locked it; append the same again later
)

// Answer tells what became of one entry.
type Answer struct {
	Result Result
	At     time.Time // Appended, Mine: the record's ledger time
	Number int64     // Appended, Mine: the ledger's number of the work
	Err    error     // Invalid: why
}

// Instance is the row by which a work is scheduled and listed. It is a projection of the work's
// chain and can be rebuilt from it.
type Instance struct {
	Number   int64         `json:"number,string"` // its reference, the ledger's own
	ID       saga.ID       `json:"-"`
	Salt     machine.Salt  `json:"-"`        // of its records' hashes; zero once it was erased
	Version  int           `json:"version"`  // of the definition; a revision may take a newer one
	Revision string        `json:"revision"` // of the source object: the one the work was started with, or revised for
	Status   saga.Status   `json:"status"`
	Reason   saga.Reason   `json:"reason"`
	Class    Class         `json:"class"`           // its place in the order of claims
	Step     string        `json:"step"`            // the one at issue while it is retrying, compensating, in review or paused; see [AtIssue]
	Session  machine.Token `json:"session,string"`  // who holds it; 0: no session
	Due      time.Time     `json:"dueAt,omitzero"`  // released: when it wants attention; zero: never, by itself
	WaitsFor string        `json:"waitsFor"`        // released: the destination that it waits for; empty: nothing but its time
	Base     int64         `json:"base"`            // seq of the latest record with a snapshot; 1 when there is none
	Posted   int64         `json:"postedSignals"`   // signals received
	Consumed int64         `json:"consumedSignals"` // signals consumed by records
	// Unconfirmed: its ledger was lost, and a step was adopted as done that may not have happened.
	Unconfirmed bool      `json:"unconfirmed"`
	Deadline    time.Time `json:"deadlineAt,omitzero"` // when it has to be at its end, or had to; zero: at no time
	// Remains is what is left of it: empty while all is there, [BodiesGone], or what is left when its records have gone, a [machine.Remains].
	Remains  string    `json:"-"`
	Created  time.Time `json:"startedAt"`
	Updated  time.Time `json:"updatedAt"`
	Finished time.Time `json:"finishedAt,omitzero"` // terminal works only: when it ended first
}

// GoesOn reports whether a work goes on by itself: a session may hold it, and when that is over it is due.
func GoesOn(status saga.Status, reason saga.Reason) bool {
	return status.Live() || reason == saga.ReasonHung
}

// Unconfirmed reports whether r adopts a step as done that may not have happened.
func Unconfirmed(r *machine.Record) bool {
	return r.Kind == machine.KindAdopted && r.ErrorClass == saga.Unknown
}

// Deadline is when a work has to be at its end once r is stored, and zero when that is over or no longer of concern;
// it is h's before.
func Deadline(h *Instance, r *machine.Record) time.Time {
	switch resumes := h.Status.Parked() && h.Reason != saga.ReasonHung && r.Status.Live(); {
	case r.Limit > 0:
		return r.EndsBy()
	case r.Kind == machine.KindOverdue, r.Status == saga.Compensating, r.Status.Terminal(),
		resumes && !h.Deadline.After(r.At):
		return time.Time{}
	default:
		return h.Deadline
	}
}

// AtIssue returns the step that a work is about once r is stored: while it is retrying,
// waiting, compensating, in review or paused the one that r arms or speaks of, else the one that it was
// about before. A record that changes it rewrites the head.
func AtIssue(r *machine.Record, before string) string {
	switch r.Status {
	case saga.Retrying, saga.Waiting, saga.Compensating, saga.Review, saga.Paused:
		step := r.Step
		if r.Dispatch != nil {
			step = r.Dispatch.Step
		}
		return cmp.Or(step, before)
	default:
		return ""
	}
}

// Chain is a work as a coordinator loads it.
type Chain struct {
	Instance Instance
	Records  []machine.Record // from Head.Base on
	Signals  []machine.Signal // the unread ones: no record has consumed them
	At       time.Time        // the database's clock when it was read
	// Changed is when the database became another one (a fail-over, a restore), for a chain whose
	// latest record was written before: what was stored behind it may be forgotten. Zero for
	// others. A ledger tells it once a session was opened on it.
	Changed time.Time
	// Restored: a person said of that change that the database was restored. Much may be forgotten, and
	// what others said meanwhile.
	Restored bool
	// Over: the latest record arms an attempt, and its session is over: buried, or expired and buried by
	// a claim. Its process neither sends nor awaits anything under it any more. Not told where Changed
	// is set: what has ended a lease there may be that its renewal was forgotten.
	Over bool
}

// Arms reports whether the latest record arms an attempt.
func (c *Chain) Arms() bool {
	n := len(c.Records)
	return n > 0 && c.Records[n-1].Dispatch != nil
}

// Claim says what a process can take. Works are given in the order of their class, and within one
// the longest due first; a work whose holder died counts as due since the end of its holder's
// lease. Works that have ended and have an unread signal count as begun.
//
// Those that wait for a destination stand in a line of its own, in the order of their class, and
// within one in that of their starting. What is to be undone goes before all else, whichever line
// it stands in; then the lines take turns: the first of each, the second of each, and so on, within
// one turn the longest due first. So no line keeps another waiting: where all have plenty, each
// gets its part of Limit, and where Limit is less than the number of lines, those that are passed
// over become the longest due.
type Claim struct {
	Limit int // at most this many works, those that wait for a destination included
	// Fresh: of them, up to this many go first to works that have not begun and wait for no
	// destination.
	Fresh int
	// Rooms says of how many due works that wait for a destination this process has room there now,
	// by the destination's name. Those that wait for one that is not named, or has no room, are
	// left alone.
	Rooms map[string]int
	// Known are the definitions this process can run; works of others are left alone. A work that
	// has ended is known to a process that knows its version or a newer one of its saga: an older
	// one cannot tell what the work did.
	Known []Version
}

// Claimed is what a claim gives.
type Claimed struct {
	// Instances are the works that the session holds from now on, in the order of the claim, and
	// behind them those that it held already and that have an unread signal.
	Instances []Instance
	// Controls is the newest version of all controls.
	Controls int64
}

// Version names one version of a definition.
type Version struct {
	Saga    string
	Version int
}

// MaxText is how long a signal's key, an external id, a destination's name and the source of a
// duplicate may be, in bytes: what the index of every engine can hold.
const MaxText = 768

// Counter is the random name under which a process counts blocked duplicates, for some hours at
// most. It is positive.
type Counter int64

// CounterSilence is how long a counter is silent before it counts as gone.
const CounterSilence = 24 * time.Hour

// Duplicate counts starts of a known work that were answered from the ledger.
type Duplicate struct {
	ID     saga.ID
	Source string // who sent them, as told at Start
	Count  int64
	First  time.Time
	Last   time.Time
}

// BlockedDay counts the duplicates of a source that one layer blocked on one day by the store's clock,
// whatever became since of the works and deliveries that they were about; or the deliveries of a source that were refused.
type BlockedDay struct {
	Day    time.Time // midnight, UTC
	By     string    // one of the layers, or what stands for a reason to refuse deliveries
	Source string    // whose they were, as the layer knows it
	Count  int64
}

// The layers that block duplicates. The source of the first three is that of the start, the delivery or the object, of
// an answer or a vote the saga, of a lookup the destination; "" is one that is not known.
const (
	ByStart    = "start"    // a start of a known work was answered from the ledger, see [Catalogue.Count]
	ByReceiver = "receiver" // a delivery had come before
	ByVersion  = "version"  // a delivery told of a version that was known, or older; one that is replayed counts once
	ByAnswer   = "answer"   // a callback or a message had come before
	ByVote     = "vote"     // a person had voted
	ByRequest  = "request"  // a start or an act by HTTP had been answered under its key
	ByLookup   = "lookup"   // an effect that was in doubt was found, and not made again
)

// Layers are all of them.
var Layers = []string{ByStart, ByReceiver, ByVersion, ByAnswer, ByVote, ByRequest, ByLookup}

// DayOf is the day that t is in.
func DayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// Definition is a definition's structure as it was registered.
type Definition struct {
	Spec      program.Spec
	Structure string // hash over what must not change under one version number
	JSON      json.RawMessage
	First     time.Time // when the ledger first saw it
}
