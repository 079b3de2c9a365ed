package sqlstore

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/store/internal/valid"
)

// controlRow is a row of amends_controls or amends_audit.
type controlRow struct {
	Version, Session, Nonce         Number
	At                              Moment
	Kind, Name, Body, Actor, Reason Text
	Live                            Flag // thisControl: the session that would set it is
}

func (r *controlRow) control() ledger.Control {
	return ledger.Control{
		Kind: ledger.ControlKind(r.Kind), Name: string(r.Name), Version: int64(r.Version), Body: raw(r.Body),
		Actor: string(r.Actor), Reason: string(r.Reason),
		Session: machine.Token(r.Session), Nonce: int64(r.Nonce), At: r.At.Time(),
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
	if limit <= 0 {
		limit = pageSize
	}
	all, err := s.readControls(ctx, acts, string(kind), name, limit)
	if err != nil {
		return nil, s.failed(ctx, err, "acts of %s %q", kind, name)
	}
	return all, nil
}

func (s *chains) readControls(ctx context.Context, query string, args ...any) ([]ledger.Control, error) {
	var rows []controlRow
	err := s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error { return sqlx.SelectContext(ctx, q, &rows, query, args...) })
	if err != nil {
		return nil, err
	}
	all := make([]ledger.Control, len(rows))
	for i := range rows {
		all[i] = rows[i].control()
	}
	return all, nil
}

// SetControl stores a control if it still has the version it was decided on.
func (s *chains) SetControl(ctx context.Context, t machine.Token, c ledger.Control) (ledger.Control, error) {
	err := valid.Control(t, &c)
	if err == nil {
		c, err = s.setControl(ctx, t, c)
	}
	if err != nil {
		return ledger.Control{}, s.failed(ctx, err, "set %s %q", c.Kind, c.Name)
	}
	return c, nil
}

func (s *chains) setControl(ctx context.Context, t machine.Token, c ledger.Control) (ledger.Control, error) {
	if len(c.Body) == 0 {
		c.Body = nil
	}
	ctx = Again(ctx)
	version, at, stored, err := s.db.SetControl(ctx, ControlArgs{
		Token: int64(t), Kind: string(c.Kind), Name: c.Name, Version: c.Version, Nonce: c.Nonce,
		Body: Null(string(c.Body)), Actor: Null(c.Actor), Reason: Null(c.Reason),
	})
	if err != nil {
		return c, err
	}
	if stored {
		c.Version, c.Session, c.At = version, t, at.Time()
		return c, nil
	}
	var is controlRow // behind the attempt, which may have waited for another
	err = s.db.Plain(ctx, func(ctx context.Context, q Queries) error {
		return sqlx.GetContext(ctx, q, &is, s.db.Text(thisControl), s.db.Clock(), int64(t), string(c.Kind), c.Name)
	})
	switch {
	case err != nil:
		return c, err
	case int64(is.Version) > c.Version && int64(is.Session) == int64(t) && int64(is.Nonce) == c.Nonce:
		return is.control(), nil
	case t != 0 && !bool(is.Live):
		return c, ledger.ErrSessionDead
	default:
		return c, ledger.ErrChanged
	}
}
