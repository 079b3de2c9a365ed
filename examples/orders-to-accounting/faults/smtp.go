package faults

import (
	"net"

	"github.com/emersion/go-smtp"
)

// errTryLater is the mail server's word that it did not take a message.
var errTryLater = &smtp.SMTPError{
	Code:         451,
	EnhancedCode: smtp.EnhancedCode{4, 3, 2},
	Message:      "busy, this message was not taken",
}

// SMTP stands around the moment in which a mail server stores a received
// message about order. The faults that only HTTP has are not on its menu.
func (i *Injector) SMTP(order string, conn net.Conn, store func() error) error {
	kind := i.next(SMTP, "mail "+order).Kind
	switch kind {
	case TooMany:
		return errTryLater
	case CutBefore:
		return cut(conn)
	case Slow:
		i.hold(i.timing.Slow, nil)
	}
	if err := store(); err != nil {
		return err
	}
	switch kind {
	case CutAfter:
		return cut(conn)
	case Silent:
		i.hold(i.timing.Silent, nil)
	}
	return nil
}
