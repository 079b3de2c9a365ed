package program

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// Clean makes a text fit for every database: valid UTF-8, without NUL, at most limit bytes. It
// never cuts a character in two.
func Clean(s string, limit int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= limit {
		return s
	}
	const mark = "…"
	cut := limit - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}

// MaxExternalID is how long an external id may be, in bytes.
const MaxExternalID = 512

// KeepsID reports whether an external id can be kept as it is. It is never altered: the next step and the undo would
// take what is left for the destination's word.
func KeepsID(id string) bool { return Clean(id, MaxExternalID) == id }

// HashHex is the SHA-256 of a body in hexadecimal, by which people compare what they must not see.
func HashHex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
