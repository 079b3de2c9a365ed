package postgres

import (
	"encoding/hex"
	"strconv"
)

// array writes column n of rows as a Postgres array, nil when every row is NULL. The values are those of
// engine.Values: int64, bool, string, []byte, nil.
func array(rows []*pending, n int) any {
	size, empty := 2, true
	for _, p := range rows {
		switch v := p.row[n].(type) {
		case nil:
			size += 5
			continue
		case string:
			size += len(v) + 3
		case []byte:
			size += 2*len(v) + 6
		default:
			size += 12
		}
		empty = false
	}
	if empty {
		return nil
	}
	b := make([]byte, 1, size)
	b[0] = '{'
	for i, p := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, p.row[n])
	}
	return string(append(b, '}'))
}

func element(b []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		return strconv.AppendInt(b, v, 10)
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		return quoted(b, v)
	case []byte:
		b = append(b, `"\\x`...)
		b = hex.AppendEncode(b, v)
		return append(b, '"')
	}
	return append(b, "NULL"...)
}

// quoted writes an element in double quotes, in which only quotes and backslashes need another backslash.
func quoted(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b = append(b, s[from:i]...)
			b = append(b, '\\')
			from = i
		}
	}
	return append(append(b, s[from:]...), '"')
}
