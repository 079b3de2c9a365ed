package pgdb

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/pgtest"
)

func arrays(t *testing.T) *sqlx.DB {
	t.Helper()
	s, err := New(pgtest.URL(t), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	db := s.Pool(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// An array is for the server what was put into it, NULLs among it, and nothing when it has nothing else.
func TestArray(t *testing.T) {
	t.Parallel()
	db := arrays(t)
	for kind, values := range map[string][]any{
		"boolean":  {true, nil, false},
		"bytea":    {[]byte{0, 255, '\\', '"'}, nil, []byte{}},
		"bigint":   {int64(math.MinInt64), nil, int64(math.MaxInt64), int64(-1)},
		"smallint": {int64(math.MinInt16), nil, int64(math.MaxInt16), int64(-1)},
		"integer":  {int64(math.MinInt32), nil, int64(math.MaxInt32), int64(-1)},
		"text":     {`NULL {"a",b} \x41 ' "` + "\n😀", nil, "", "NULL"},
	} {
		var got []any
		rows, err := db.Queryx(`SELECT * FROM unnest($1::`+kind+`[])`, Array(kind, len(values), func(i int) any { return values[i] }))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		for rows.Next() {
			v, err := rows.SliceScan()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, v[0])
		}
		if err := rows.Err(); err != nil || !reflect.DeepEqual(got, values) {
			t.Errorf("%s: %#v came as %#v (%v)", kind, values, got, err)
		}
	}
	if a := Array("text", 2, func(int) any { return nil }); a != nil {
		t.Errorf("an array of NULLs alone is %v", a)
	}
}

// What a type has no room for, and what is no text, is refused and not changed.
func TestArrayRefuses(t *testing.T) {
	t.Parallel()
	db := arrays(t)
	for kind, v := range map[string]any{"smallint": int64(math.MaxInt16) + 1, "integer": int64(math.MinInt32) - 1, "text": "a\x00b"} {
		var got any
		err := db.Get(&got, `SELECT unnest($1::`+kind+`[])`, Array(kind, 1, func(int) any { return v }))
		if !Refused(err) {
			t.Errorf("%v as %s: %v, %v", v, kind, got, err)
		}
	}
}
