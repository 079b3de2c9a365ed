package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/store/internal/rows"
)

// objectName is the name of a delivery's object, as [inbox.Object.String] writes it.
var objectName = func() string {
	escaped := func(name string) string {
		return "replace(replace(replace(d." + name + ", '%25', '%2525'), '%3A', '%253A'), ':', '%3A')"
	}
	return escaped("source") + ` || CASE d.tenant WHEN '' THEN '' ELSE ':' || ` + escaped("tenant") + ` END || ':' || ` +
		escaped("type") + ` || ':' || ` + escaped("id")
}()

// Stopped lists objects with deliveries that changed nothing. It reads the newest [intake.StoppedWithin]
// deliveries.
func (s *inboxRole) Stopped(ctx context.Context, f intake.StoppedFilter) ([]intake.Stopped, error) {
	text, args := stoppedText(&f)
	var all []intake.Stopped
	err := s.db.get(ctx, rows.Stopped(&all), text, args...)
	return orNone(all, wrap(err, "count what was stopped"))
}

func stoppedText(f *intake.StoppedFilter) (text string, args []any) {
	stale, duplicate := string(intake.Stale), string(intake.Duplicate)
	var newest, w where
	newest.object("d", f.Object)
	w.and("(g.copies > 1 OR d.disposition IN (?, ?))", stale, duplicate)
	if f.Prefix != "" {
		w.and("substr("+objectName+", 1, length(?)) = ?", f.Prefix, f.Prefix)
	}
	key := rows.Names("d.", rows.KeyColumns)
	args = slices.Concat([]any{stale, duplicate}, newest.args, []any{intake.StoppedWithin}, w.args, []any{cmp.Or(f.Limit, pageSize)})
	return strings.Join([]string{
		`SELECT ` + key + `, CAST(sum(coalesce(g.copies, 1) - 1) AS bigint) AS copies`,
		`CAST(sum(CASE WHEN d.disposition IN (?, ?) THEN 1 ELSE 0 END) AS bigint) AS known`,
		`min(d.received_at) AS first_at`, `max(CASE WHEN g.copies > 1 THEN g.last_at ELSE d.received_at END) AS last_at`,
	}, ", ") + `
		FROM (SELECT * FROM amends_inbox AS d` + newest.String() + ` ORDER BY d.number DESC LIMIT ?) AS d` + rows.DigestOfDelivery + w.String() + `
		GROUP BY ` + key + ` ORDER BY last_at DESC, ` + key + ` LIMIT ?`, args
}
