package sqlstore

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

// oneKey is the id under which all is sealed. Every other key was destroyed.
type oneKey string

func (k oneKey) Sealing(string) (string, error) { return string(k), nil }
func (k oneKey) Key(id string) ([]byte, error) {
	if id != string(k) {
		return nil, nil //nolint:nilnil // it was destroyed
	}
	return make([]byte, ledger.KeySize), nil
}

// A sealed body is a format: what was stored opens where it stands and nowhere else, what it says without its key is there without it, and what does not
// decode is damage.
func TestSealedBodiesAreAFormat(t *testing.T) {
	d := &Dialect{Keys: oneKey("2026")}
	d.sealed.Store(true)
	want := envelope{key: "2026", digest: machine.Hash{1, 2, 3}, left: json.RawMessage(`{"bytes":9}`)}
	const body, box, rest = `{"id":"x"}`, "MPzqb9PKWpxaKnQ0FAnsIfj+XzhWVzHD7h/WYxc59D/IqbS/QyA", `AQIDAAAAAAAAAAAAAAAAAA:MjAyNg:{"bytes":9}`
	same := func(e envelope) bool {
		return e.key == want.key && e.digest == want.digest && string(e.left) == string(want.left)
	}
	again, err := seal(d, "", want, body, place{"record", "7"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{sealed + box + ":" + rest, again} {
		if got, e, err := open(d, text, place{"record", "7"}); err != nil || got != body || !same(e) {
			t.Errorf("%s opens as %q, %+v (%v)", text, got, e, err)
		}
		if got, _, err := open(d, text, place{"record", "8"}); got != "" || !errors.Is(err, ledger.ErrDamaged) {
			t.Errorf("at another place %s opens as %q (%v)", text, got, err)
		}
		other := &Dialect{Keys: oneKey("2027")}
		if got, e, err := open(other, []byte(text), place{"record", "7"}); got != nil || !same(e) || !errors.Is(err, ledger.ErrKeys) {
			t.Errorf("without its key %s opens as %q, %+v (%v)", text, got, e, err)
		}
	}
	for _, text := range []string{sealed + box, sealed + box[:8] + ":" + rest, sealed + "?:" + rest, sealed + box + ":AQID:MjAyNg:", sealed + box + ":AQIDAAAAAAAAAAAAAAAAAAAA:MjAyNg:"} {
		if got, _, err := open(d, text, place{"record", "7"}); got != "" || !errors.Is(err, ledger.ErrDamaged) {
			t.Errorf("%s opens as %q (%v)", text, got, err)
		}
	}
}
