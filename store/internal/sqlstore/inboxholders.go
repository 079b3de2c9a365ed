package sqlstore

import (
	"context"

	"github.com/amends-dev/amends/internal/machine"
)

// Holder is what the latest session of this process is called where objects are leased.
func (s *inboxRole) Holder() string {
	if t := s.db.latest.Load(); t != 0 {
		return holder(machine.Token(t))
	}
	return ""
}

func holder(t machine.Token) string { return "session " + t.String() }

// Free has what a session leased, whose process has ended, be due now. One that is alone frees what all others
// did.
func Free(ctx context.Context, s *Store, t machine.Token, alone bool) error {
	d, which := s.db, `lease_holder = ?`
	if alone {
		which = `lease_holder LIKE 'session %' AND lease_holder <> ?`
	}
	return d.Pulse(Again(ctx), func(ctx context.Context, q Queries) error {
		now, err := d.Now(ctx, q)
		if err == nil {
			at := d.Moment(now)
			_, err = q.ExecContext(ctx, d.Bind(`UPDATE amends_objects SET due_at = ?, leased_until = ?, lease_holder = NULL WHERE due_at <= ? AND leased_until > ? AND `+which), at, at, at, at, holder(t))
		}
		return err
	})
}
