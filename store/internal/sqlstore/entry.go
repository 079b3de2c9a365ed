package sqlstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/valid"
)

// RecordColumns are the columns of amends_records in the order of [Values], without at, which is the
// database's.
const RecordColumns = `head, session, nonce, seq, version, attempt, arm_attempt, arm_reissue, arm_budget_ms, wait_ms,
	rank, held, body_dropped, hash, kind, status, reason, revision, step, direction, external_id, class, error, signals,
	arm_step, arm_direction, arm_key, body, snapshot`

// Width is the number of [RecordColumns].
const Width = 29

// Values returns the row of an entry, in the order of [RecordColumns]: int64, bool, string, []byte, and nil for
// NULL. It refuses what would not come back as it went in, with every reason: text no database takes, and
// durations that a column of milliseconds would round. The rest is left to the constraints of the database.
func Values(e *ledger.Entry) ([]any, error) {
	r := &e.Record
	c := columns{values: make([]any, 0, Width)}
	c.add(e.Head)
	c.add(int64(r.Session))
	c.number(r.Nonce)
	c.add(r.Seq)
	c.number(int64(r.Version))
	c.number(int64(r.Attempt))
	if a := r.Arm; a != nil {
		c.add(int64(a.Attempt))
		c.number(int64(a.Reissue))
		c.milliseconds("budget", a.Budget)
	} else {
		c.nothing(3)
	}
	if r.Wait != 0 {
		c.milliseconds("wait", r.Wait)
	} else {
		c.nothing(1)
	}
	switch {
	case e.Schedule != nil:
		c.add(int64(e.Schedule.Class))
		c.add(e.Schedule.Hold)
	case r.Seq == 1: // a new work has no schedule to keep
		c.add(int64(0))
		c.add(false)
	default:
		c.nothing(2)
	}
	if r.BodyDropped {
		c.add(true)
	} else {
		c.nothing(1)
	}
	c.add(r.Hash[:])
	c.add(c.valid("kind", string(r.Kind)))
	c.add(c.valid("status", string(r.Status)))
	c.text("reason", string(r.Reason))
	c.text("revision", r.Revision)
	c.text("step", r.Step)
	c.text("direction", string(r.Direction))
	c.key("external id", r.ExternalID)
	c.text("class", string(r.Class))
	c.text("error", r.Error)
	c.signals(r.Signals)
	if a := r.Arm; a != nil {
		c.text("armed step", a.Step)
		c.text("armed direction", string(a.Direction))
		c.text("key", a.Key)
	} else {
		c.nothing(3)
	}
	c.text("body", string(r.Body))
	c.text("snapshot", string(r.Snapshot))
	c.valid("saga", e.ID.Saga)
	c.valid("work", e.ID.Work)
	return c.values, errors.Join(c.faults...)
}

// Projects reports whether the record changes its head.
func Projects(e *ledger.Entry) bool {
	return e.Schedule != nil || len(e.Record.Signals) > 0 || len(e.Record.Snapshot) > 0 ||
		e.Record.Kind == saga.KindRevised
}

// columns collects the values of a row and what is wrong with them.
type columns struct {
	values []any
	faults []error
}

func (c *columns) add(v any) { c.values = append(c.values, v) }

func (c *columns) nothing(n int) {
	for range n {
		c.values = append(c.values, nil)
	}
}

func (c *columns) number(n int64) {
	if n == 0 {
		c.nothing(1)
		return
	}
	c.add(n)
}

func (c *columns) text(name, s string) {
	if s == "" {
		c.nothing(1)
		return
	}
	c.add(c.valid(name, s))
}

// key is a text that is in an index.
func (c *columns) key(name, s string) {
	if err := valid.Key(name, s); err != nil {
		c.faults = append(c.faults, err)
	}
	if s == "" {
		c.nothing(1)
		return
	}
	c.add(s)
}

func (c *columns) valid(name, s string) string {
	if err := valid.Text(name, s); err != nil {
		c.faults = append(c.faults, err)
	}
	return s
}

func (c *columns) milliseconds(name string, d time.Duration) {
	if d < 0 || d%time.Millisecond != 0 {
		c.faults = append(c.faults, fmt.Errorf("%s %v is negative or not whole milliseconds", name, d))
	}
	c.add(d.Milliseconds())
}

func (c *columns) signals(ids []int64) {
	if len(ids) == 0 {
		c.nothing(1)
		return
	}
	b, err := json.Marshal(ids)
	if err != nil {
		c.faults = append(c.faults, err)
	}
	c.add(string(b))
}
