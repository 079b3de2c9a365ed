package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/store/internal/rows"
)

// objectName is the name of a delivery's object, as [reconcile.Object.String] writes it.
var objectName = func() string {
	escaped := func(name string) string {
		return "replace(replace(replace(d." + name + ", '%25', '%2525'), '%3A', '%253A'), ':', '%3A')"
	}
	return escaped("source") + ` || CASE d.tenant WHEN '' THEN '' ELSE ':' || ` + escaped("tenant") + ` END || ':' || ` +
		escaped("type") + ` || ':' || ` + escaped("id")
}()

// Stopped returns of which objects deliveries came to nothing.
func (s *inbox) Stopped(ctx context.Context, f reconcile.StoppedFilter) ([]reconcile.Stopped, error) {
	var w where
	w.and("(g.copies > 1 OR d.disposition IN (?, ?))", string(reconcile.Stale), string(reconcile.Duplicate))
	w.object("d", f.Object)
	if f.Prefix != "" {
		w.and("substr("+objectName+", 1, length(?)) = ?", f.Prefix, f.Prefix)
	}
	key := rows.Names("d.", rows.KeyColumns)
	args := append([]any{string(reconcile.Stale), string(reconcile.Duplicate)}, w.args...)
	var found []rows.Stopped
	err := s.db.get(ctx, &found, strings.Join([]string{
		`SELECT ` + key + `, CAST(sum(coalesce(g.copies, 1) - 1) AS bigint) AS copies`,
		`CAST(sum(CASE WHEN d.disposition IN (?, ?) THEN 1 ELSE 0 END) AS bigint) AS known`,
		`min(d.received_at) AS first_at`, `max(CASE WHEN g.copies > 1 THEN g.last_at ELSE d.received_at END) AS last_at`,
	}, ", ")+`
		FROM amends_inbox AS d`+rows.DigestOfDelivery+w.String()+`
		GROUP BY `+key+` ORDER BY last_at DESC, `+key+` LIMIT ?`, append(args, cmp.Or(f.Limit, pageSize))...)
	if err != nil {
		return nil, fmt.Errorf("count what was stopped: %w", err)
	}
	all := make([]reconcile.Stopped, len(found))
	for i := range found {
		all[i] = found[i].Row()
	}
	return all, nil
}
