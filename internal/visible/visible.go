// Package visible draws characters that would change how a text reads without being seen: those that turn the direction of writing, and
// those without a width.
package visible

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
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

// hidden reports control characters and those that change a text without being seen.
func hidden(r rune) bool { return unicode.IsControl(r) || Hides(r) }

// Text makes a text from elsewhere safe to show: an id or an error message must not move the
// cursor, hide what follows, or look like a line of ours.
func Text(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hidden) {
		return s
	}
	return strings.ReplaceAll(lines(s), "\n", `\n`)
}

// lines is Text for a text of several lines.
func lines(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return hidden(r) && r != '\n' }) {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '\n':
			b.WriteByte('\n')
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// JSON writes v as JSON that is safe to show: people read it on terminals, too. What is hidden is escaped, and is the same text for a
// program.
func JSON(w io.Writer, v any, indent string) error {
	enc := json.NewEncoder(&Writer{W: w})
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	return enc.Encode(v)
}

// Writer writes whole lines to W, with what is hidden in them escaped. What does not end a line is kept back.
type Writer struct {
	W    io.Writer
	rest []byte
}

func (s *Writer) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	whole := s.rest[:bytes.LastIndexByte(s.rest, '\n')+1]
	_, err := io.WriteString(s.W, lines(string(whole)))
	s.rest = s.rest[len(whole):]
	return len(p), err
}

// Web reports whether a link leads to a page of the web. Others, such as javascript: or one that was cut, are shown as text.
func Web(link string) bool {
	u, err := url.Parse(link)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && !strings.HasSuffix(link, "…")
}
