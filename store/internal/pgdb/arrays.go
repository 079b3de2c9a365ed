package pgdb

import (
	"encoding/binary"
	"fmt"
)

// elements are the object ids of the types that an array may be of, by their names.
var elements = map[string]uint32{"boolean": 16, "bytea": 17, "bigint": 20, "smallint": 21, "integer": 23, "text": 25}

// null is the length of an element that is NULL.
const null = ^uint32(0)

// Array writes one column of rows as a Postgres array of a type, in the binary format, which the server takes in without looking for quotes; nil
// when every row is NULL. at returns row i's value: int64, bool, string, []byte or nil.
func Array(kind string, rows int, at func(i int) any) any {
	element, known := elements[kind]
	if !known {
		panic(fmt.Sprintf("pgdb: no arrays of %s", kind))
	}
	size, empty := 20, true
	for i := range rows {
		size += 4
		switch v := at(i).(type) {
		case nil:
			continue
		case string:
			size += len(v)
		case []byte:
			size += len(v)
		default:
			size += 8
		}
		empty = false
	}
	if empty {
		return nil
	}
	b := make([]byte, 0, size)
	for _, header := range [...]uint32{1, 1, element, uint32(rows), 1} { // of one dimension, may have NULLs, its first has the index 1
		b = binary.BigEndian.AppendUint32(b, header)
	}
	for i := range rows {
		b = appendElement(b, kind, at(i))
	}
	return b
}

func appendElement(b []byte, kind string, v any) []byte {
	switch v := v.(type) {
	case string:
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	case []byte:
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	case bool:
		b = binary.BigEndian.AppendUint32(b, 1)
		if v {
			return append(b, 1)
		}
		return append(b, 0)
	case int64:
		switch {
		case kind == "smallint" && int64(int16(v)) == v:
			return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, 2), uint16(v))
		case kind == "integer" && int64(int32(v)) == v:
			return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, 4), uint32(v))
		} // what is too large for these has eight bytes, too: the server refuses it
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(v))
	case nil:
		return binary.BigEndian.AppendUint32(b, null)
	}
	panic(fmt.Sprintf("pgdb: a %T in an array of %s", v, kind))
}
