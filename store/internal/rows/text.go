package rows

import (
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/intake"
)

const (
	nameLimit = 512  // bytes of what an index holds
	textLimit = 4096 // of what people read
	bad       = "\ufffd"
)

// printable makes s fit for a text column: valid UTF-8 without NUL.
func printable(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, bad), "\x00", bad)
}

// text is s for people; what is too long for them is cut.
func text(s string) any {
	if s == "" {
		return nil
	}
	s = printable(s)
	if len(s) > textLimit {
		s = whole(s[:textLimit]) + "…"
	}
	return s
}

// Text is s for people, as a parameter of a statement.
func Text(s string) any { return text(s) }

// name is s for an index. What is too long for one is cut and gets its digest, so that two names
// stay two.
func name(s string) string {
	s = printable(s)
	if len(s) <= nameLimit {
		return s
	}
	d := intake.DigestOf(s)
	return whole(s[:nameLimit-40]) + "…" + hex.EncodeToString(d[:])
}

// Name is s for an index, as a parameter of a statement.
func Name(s string) string { return name(s) }

// counted is v as every row has it: it is counted by its name.
func counted(v intake.Disposition) intake.Disposition { return intake.Disposition(name(string(v))) }

// whole takes the first part of a rune off the end of s.
func whole(s string) string { return strings.ToValidUTF8(s, "") }

// Object returns o as the database knows it.
func Object(o intake.Object) intake.Object {
	return intake.Object{Source: name(o.Source), Tenant: name(o.Tenant), Type: name(o.Type), ID: name(o.ID)}
}

// number is n, NULL for zero.
func number(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

func flag(b bool) any {
	if !b {
		return nil
	}
	return true
}

// digest is d, NULL for none.
func digest(d intake.Digest) any {
	if d.IsZero() {
		return nil
	}
	return d[:]
}

// Micros is t in microseconds since 1970, NULL for none and for what no calendar knows.
func Micros(t time.Time) any {
	if t = known(t); t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// known is t, none if no calendar knows it.
func known(t time.Time) time.Time {
	if y := t.UTC().Year(); y < 1 || y > 9999 {
		return time.Time{}
	}
	return t
}
