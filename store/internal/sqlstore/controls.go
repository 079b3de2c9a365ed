package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/valid"
)

// controlFields are a row of amends_controls or amends_audit.
func controlFields(c *ledger.Control) []rows.Field {
	return []rows.Field{
		{"version", &c.Version}, {"at", &c.At}, {"session", (*int64)(&c.Session)}, {"nonce", &c.Nonce}, {"kind", (*string)(&c.Kind)},
		{"name", &c.Name}, {"body", &c.Body}, {"actor", &c.Actor}, {"reason", &c.Reason},
	}
}

// Controls returns every control there is. The newest version is the one of the control that was
// set last.
func (s *chains) Controls(ctx context.Context) (all []ledger.Control, newest int64, err error) {
	all, err = s.readControls(ctx, allControls)
	if err != nil {
		return nil, 0, s.failed(ctx, err, "read the controls")
	}
	for i := range all {
		newest = max(newest, all[i].Version)
	}
	return all, newest, nil
}

// Acts returns what people did to a control, the newest first.
func (s *chains) Acts(ctx context.Context, kind ledger.ControlKind, name string, limit int) ([]ledger.Control, error) {
	none := valid.Text("kind", string(kind)) != nil || valid.Text("name", name) != nil
	if none { // what cannot be stored is not there
		return nil, nil
	}
	all, err := s.readControls(ctx, acts, string(kind), name, cmp.Or(max(limit, 0), pageSize))
	return orNone(all, s.failed(ctx, err, "acts of %s %q", kind, name))
}

func (s *chains) readControls(ctx context.Context, query string, args ...any) (all []ledger.Control, err error) {
	err = s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
		return rows.Select(ctx, q, rows.Into(&all, controlFields), query, args...)
	})
	return all, err
}

// SetControl stores a control if it still has the version it was decided on.
func (s *chains) SetControl(ctx context.Context, t machine.Token, c ledger.Control) (ledger.Control, error) {
	err := valid.Control(t, &c)
	if err == nil {
		c, err = s.setControl(ctx, t, c)
	}
	return orNone(c, s.failed(ctx, err, "set %s %q", c.Kind, c.Name))
}

func (s *chains) setControl(ctx context.Context, t machine.Token, c ledger.Control) (ledger.Control, error) {
	if len(c.Body) == 0 {
		c.Body = nil
	}
	ctx = Again(ctx)
	set := c
	err := s.storeControl(ctx, t, &set)
	if err == nil {
		return set, nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return c, err
	}
	var is []ledger.Control // behind the attempt, which may have waited for another
	var live bool           // the session that would set it is
	err = s.db.Plain(ctx, func(ctx context.Context, q Queries) error {
		return rows.Select(ctx, q, rows.Into(&is, func(c *ledger.Control) []rows.Field {
			return append(controlFields(c), rows.Field{Name: "live", At: &live})
		}), s.db.Text(thisControl), s.db.Clock(), int64(t), string(c.Kind), c.Name)
	})
	switch {
	case err != nil:
		return c, err
	case is[0].Version > c.Version && is[0].Session == t && is[0].Nonce == c.Nonce:
		return is[0], nil
	case t != 0 && !live:
		return c, ledger.ErrSessionDead
	default:
		return c, ledger.ErrChanged
	}
}

// storeControl stores a control, and behind it in one transaction, where a person sets it, which is rare,
// their act.
func (s *chains) storeControl(ctx context.Context, t machine.Token, c *ledger.Control) error {
	lane := s.db.Plain
	if c.Actor != "" {
		lane = s.db.Whole
	}
	decided := c.Version
	return lane(ctx, func(ctx context.Context, q Queries) error {
		if name, work, _ := strings.Cut(c.Name, " "); c.Kind == ledger.ControlHold { // behind a retention that is at it
			if _, err := q.ExecContext(ctx, `SELECT 1 FROM amends_instances WHERE saga = $1 AND work_id = $2`+s.db.Lock, name, work); err != nil {
				return err
			}
		}
		var at Moment
		err := q.QueryRowxContext(ctx, s.db.SetControl[0], s.db.Clock(), int64(t), string(c.Kind), c.Name, decided,
			Null(string(c.Body)), Null(c.Actor), Null(c.Reason), c.Nonce).Scan(&c.Version, &at)
		for _, count := range s.db.SetControl[1:] {
			if err == nil {
				_, err = q.ExecContext(ctx, count, c.Version)
			}
		}
		if c.Session, c.At = t, at.Time(); err != nil || c.Actor == "" {
			return err
		}
		return s.db.act(ctx, q, *c)
	})
}
