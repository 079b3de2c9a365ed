package ledger

import (
	"errors"
	"strings"
)

// ErrKeys says that a key was destroyed, or that a process was given none; of a record, that it cannot be sealed.
var ErrKeys = errors.New("what is sealed needs a key that this process does not have")

// Keys are those under which bodies are sealed. They are asked for each body that is read or written, and answer from memory.
type Keys interface {
	// Sealing returns the id of the key that seals what is stored from now on of a subject, see saga.Subject. It is "" for what
	// belongs to none: instances without one, webhooks, messages and what people say.
	Sealing(subject string) (id string, err error)

	// Key returns the [KeySize] bytes of a key, nil when it was destroyed: what it sealed counts as erased.
	Key(id string) ([]byte, error)
}

// OfSealed are keys for a ledger that is sealed already: it is not sealed by them.
type OfSealed struct{ Keys }

// KeySize is how many bytes a key has.
const KeySize = 32

// SubjectOf returns whose data an instance with these tags holds.
func SubjectOf(tags []string) string {
	for _, tag := range tags {
		if subject, is := strings.CutPrefix(tag, "subject="); is {
			return subject
		}
	}
	return ""
}
