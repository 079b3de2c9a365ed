// Package visible draws characters that would change how a text reads without being seen: those that turn the direction of writing, and
// those without a width.
package visible

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Hides reports whether r is such a character.
func Hides(r rune) bool {
	switch r {
	case '\u00ad', '\u200b', '\u200c', '\u200d', '\u2060', '\ufeff':
		return true
	}
	return unicode.Is(unicode.Bidi_Control, r)
}

// HTML draws them in the texts of a page as JSON writes them, such as \u202e. What is between < and > stays: a form says an id back
// as it is.
func HTML(page []byte) []byte {
	if bytes.IndexFunc(page, Hides) < 0 {
		return page
	}
	out, tag := make([]byte, 0, len(page)+64), false
	for len(page) > 0 {
		r, size := utf8.DecodeRune(page)
		switch {
		case r == '<':
			tag = true
		case r == '>':
			tag = false
		}
		if !tag && Hides(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, page[:size]...)
		}
		page = page[size:]
	}
	return out
}
