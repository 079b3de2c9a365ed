package intake

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxDepth is how deep a body may be nested.
const maxDepth = 64

var errTooDeep = fmt.Errorf("it is nested deeper than %d", maxDepth)

// Fingerprint digests a JSON body by what it means: the order of keys, white space, escapes and the
// way a number is written (1, 1.0, 1e0) make no difference; every digit of a number does. volatile
// names fields that change without anything having changed, as updated_at or links.self: a path of
// keys, which goes through lists. They are left out. Two bodies with the same fingerprint are the
// same state of the object.
func Fingerprint(body json.RawMessage, volatile ...string) (Digest, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return Digest{}, fmt.Errorf("fingerprint: the body is no JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Digest{}, errors.New("fingerprint: the body is no JSON: something follows the first value")
	}
	c := canon{hash: sha256.New(), drop: map[string]bool{}}
	for _, path := range volatile {
		c.drop["."+path] = true
	}
	if err := c.value(v, "", 0); err != nil {
		return Digest{}, fmt.Errorf("fingerprint: %w", err)
	}
	return Digest(c.hash.Sum(nil)[:len(Digest{})]), nil
}

// canon writes the canonical form of a JSON value: a letter for its kind, then its content with its
// length before it.
type canon struct {
	hash hash.Hash
	drop map[string]bool // paths, each key with a dot before it
}

func (c *canon) value(v any, path string, depth int) error {
	if depth > maxDepth {
		return errTooDeep
	}
	switch v := v.(type) {
	case map[string]any:
		return c.object(v, path, depth)
	case []any:
		c.size('a', len(v))
		for _, element := range v {
			if err := c.value(element, path, depth+1); err != nil {
				return err
			}
		}
	case string:
		c.text('s', v)
	case json.Number:
		c.text('n', decimal(v.String()))
	case bool:
		c.text('b', strconv.FormatBool(v))
	default: // null
		c.size('0', 0)
	}
	return nil
}

func (c *canon) object(o map[string]any, path string, depth int) error {
	maps.DeleteFunc(o, func(key string, _ any) bool { return c.drop[path+"."+key] })
	c.size('o', len(o))
	for _, key := range slices.Sorted(maps.Keys(o)) {
		c.text('k', key)
		if err := c.value(o[key], path+"."+key, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *canon) text(kind byte, s string) {
	c.size(kind, len(s))
	_, _ = io.WriteString(c.hash, s) // a hash never fails
}

func (c *canon) size(kind byte, n int) {
	c.hash.Write(binary.BigEndian.AppendUint64([]byte{kind}, uint64(n)))
}

// decimal writes a JSON number so that equal numbers are the same text: its digits without zeros at
// either end, and a power of ten. It never rounds.
func decimal(s string) string {
	digits, negative := strings.CutPrefix(s, "-")
	digits, power, _ := strings.Cut(strings.ToLower(digits), "e")
	exponent, err := strconv.ParseInt("0"+strings.TrimPrefix(power, "+"), 10, 32)
	if rest, ok := strings.CutPrefix(power, "-"); ok {
		exponent, err = strconv.ParseInt("0"+rest, 10, 32)
		exponent = -exponent
	}
	if err != nil {
		return s // a power beyond any real number; it equals itself
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	exponent -= int64(len(fraction))
	digits = strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	exponent += int64(len(digits) - len(short))
	text := short + "e" + strconv.FormatInt(exponent, 10)
	if negative {
		return "-" + text
	}
	return text
}
