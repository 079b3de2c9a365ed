package postgres

import "github.com/amends-dev/amends/store/internal/pgdb"

// array writes column n of rows as a Postgres array, nil when every row is NULL.
func array(rows []*pending, n int) any {
	return pgdb.Array(len(rows), func(i int) any { return rows[i].row[n] })
}
