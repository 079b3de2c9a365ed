package faults

import (
	"errors"
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
// message about order.
func (i *Injector) SMTP(order string, conn net.Conn, store func() error) error {
	switch i.next(SMTP, "mail "+order).Kind {
	case TooMany:
		return errTryLater
	case CutBefore:
		return cut(conn)
	case Slow:
		i.hold(i.timing.Slow, nil)
		return store()
	case CutAfter:
		return errors.Join(store(), cut(conn))
	case Silent:
		err := store()
		i.hold(i.timing.Silent, nil)
		return err
	case None, ErrorBefore, ErrorAfter: // the errors are not on this menu
	}
	return store()
}
