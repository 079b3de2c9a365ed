// Package mail is the mail side of the example: an SMTP server on a loopback
// port, the mailbox it fills, and the few lines that compose and send a
// receipt.
//
// The server does what mail servers do. A message accepted twice is stored
// twice, even under one Message-ID. There is nothing to look up over SMTP, so
// a sender that lost the answer cannot know whether its message arrived; only
// a person who opens the mailbox can.
package mail

import (
	"bytes"
	"fmt"
	"mime"
	"strings"
)

// OrderHeader is the header by which a message says which order it is about,
// with the order's reference, like shop:order:10492.
const OrderHeader = "X-Order"

// BounceDomain is the domain whose addresses the server refuses with 550.
const BounceDomain = "bounce.example"

// Bounces reports whether the server refuses mail to this address.
func Bounces(address string) bool {
	return strings.HasSuffix(strings.ToLower(address), "@"+BounceDomain)
}

// Letter is a message to send.
type Letter struct {
	From      string
	To        string
	MessageID string // without the angle brackets
	Order     string // the order's reference
	Subject   string
	Text      string
}

// Bytes is the letter in the form that travels.
func (l Letter) Bytes() []byte {
	var b bytes.Buffer
	for _, h := range [][2]string{
		{"From", l.From},
		{"To", l.To},
		{"Message-ID", "<" + l.MessageID + ">"},
		{OrderHeader, l.Order},
		{"Subject", mime.QEncoding.Encode("utf-8", l.Subject)},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], strings.NewReplacer("\r", "", "\n", "").Replace(h[1]))
	}
	b.WriteString("\r\n" + strings.ReplaceAll(l.Text, "\n", "\r\n") + "\r\n")
	return b.Bytes()
}
