package store

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/amends-dev/amends/internal/ledger"
)

// KeysIn returns the keys in a file, a line for each: its id, a space, and 32 bytes in base64. The last one seals what is stored from
// now on; those before it open what they sealed. A line of an id alone is a key that was destroyed. The file is read once.
func KeysIn(file string) (Keys, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	ring := keyRing{keys: make(map[string][]byte)}
	for i, line := range strings.Split(string(text), "\n") {
		words := append(strings.Fields(line), "", "")
		id, encoded := words[0], words[1]
		if id == "" {
			continue
		}
		key, fault := base64.StdEncoding.DecodeString(encoded)
		_, twice := ring.keys[id]
		switch {
		case len(words) > 4:
			err = errors.Join(err, fmt.Errorf("line %d has %d words, not an id and a key", i+1, len(words)-2))
		case twice:
			err = errors.Join(err, fmt.Errorf("line %d: there is a key %q already", i+1, id))
		case encoded != "" && (fault != nil || len(key) != ledger.KeySize):
			err = errors.Join(err, fmt.Errorf("line %d: key %q is not the base64 of %d bytes (openssl rand -base64 %d)", i+1, id, ledger.KeySize, ledger.KeySize))
		case encoded == "":
			ring.keys[id] = nil
		default:
			ring.keys[id], ring.last = key, id
		}
	}
	if ring.last == "" {
		err = errors.Join(err, errors.New("there is none that seals"))
	}
	if err != nil {
		return nil, fmt.Errorf("read keys in %s: %w", file, err)
	}
	return &ring, nil
}

// keyRing implements [Keys].
type keyRing struct {
	keys map[string][]byte
	last string
}

func (r *keyRing) Sealing(string) (string, error) { return r.last, nil }

func (r *keyRing) Key(id string) ([]byte, error) {
	key, is := r.keys[id]
	if !is {
		return nil, fmt.Errorf("it is not among the %d of the file; a line of its id alone says that it was destroyed", len(r.keys))
	}
	return key, nil
}
