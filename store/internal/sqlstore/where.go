package sqlstore

import (
	"strings"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/store/internal/rows"
)

// where is a condition of several, each with its parameters as question marks.
type where struct {
	all  []string
	args []any
}

func (w *where) and(condition string, args ...any) {
	w.all = append(w.all, condition)
	w.args = append(w.args, args...)
}

// is narrows a column unless value is empty.
func (w *where) is(column, value string) {
	if value != "" {
		w.and(column+" = ?", value)
	}
}

// object narrows to the fields of o that are not empty.
func (w *where) object(alias string, o intake.Object) {
	o = rows.Object(o)
	for i, value := range rows.Key(o) {
		if value != "" {
			w.and(alias+"."+rows.KeyColumns[i].Name+" = ?", value)
		}
	}
}

func (w *where) String() string {
	if len(w.all) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.all, " AND ")
}
