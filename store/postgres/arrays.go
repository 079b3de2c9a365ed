package postgres

import "github.com/amends-dev/amends/store/internal/pgdb"

// appendArrays appends the columns of rows, which are all of starts or none is.
func appendArrays(args []any, ps []*pending) []any {
	columns := followColumns
	if ps[0].Record.Seq == 1 {
		columns = startColumns
	}
	for n, c := range columns {
		args = append(args, pgdb.Array(c.kind, len(ps), func(i int) any { return ps[i].row[n] }))
	}
	return args
}
