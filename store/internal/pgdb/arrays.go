package pgdb

import (
	"encoding/hex"
	"strconv"
)

// Array writes one column of rows as a Postgres array, in the text format, nil when every row is NULL. at returns row
// i's value: int64, bool, string, []byte or nil. It is bytes, which lib/pq sends as they are, and not a string, which it copies.
func Array(rows int, at func(i int) any) any {
	size, empty := 2, true
	for i := range rows {
		switch v := at(i).(type) {
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
	for i := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, at(i))
	}
	return append(b, '}')
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

// quoted writes an element in double quotes, in which only quotes and backslashes need another
// backslash.
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
