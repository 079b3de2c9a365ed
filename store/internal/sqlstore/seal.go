package sqlstore

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/rows"
)

// sealed begins a body as it stands in a row, and no JSON. Behind it come, with a colon between, the box, the digest and the id of the
// key, each in base64, and what is left.
const sealed = "sealed:"

// envelope is what a sealed body says without its key: of a record what retention would leave of it.
type envelope struct {
	key    string          // its id
	digest machine.Hash    // what stands for the body in the hash of its record; zero of what belongs to none
	left   json.RawMessage // of the body
}

// errNoKeys says that this process was given none.
var errNoKeys = fmt.Errorf("%w: give it by Options.Keys of package store, or by AMENDS_KEYS to the command", ledger.ErrKeys)

// place says where a body stands: it is opened nowhere else.
type place [5]string

// seal seals a body under a key for a subject. In a ledger that is not sealed it leaves the
// body as it is; a sender's that begins as sealed ones do gets a space in front.
func seal[T ~string | ~[]byte](d *Dialect, subject string, e envelope, body T, at place) (T, error) {
	var none T
	switch {
	case !d.sealed.Load() && isSealed(body):
		return T(append([]byte(" "), body...)), nil
	case len(body) == 0 || !d.sealed.Load():
		return body, nil
	case d.Keys == nil:
		return none, errNoKeys
	}
	id, err := d.Keys.Sealing(subject)
	if err != nil {
		return none, fmt.Errorf("ask for the key that seals: %w", err)
	}
	under, err := d.under(id)
	if err != nil {
		return none, err
	}
	enc := base64.RawStdEncoding
	closed := len(body) + under.Overhead()
	whole := len(sealed) + enc.EncodedLen(closed) + enc.EncodedLen(len(e.digest)) + enc.EncodedLen(len(id)) + len(e.left) + 3
	room := make([]byte, whole+closed) // one for both: every record has bodies
	b := under.Seal(room[whole:whole], nil, []byte(body), at.under(id))
	out := append(enc.AppendEncode(append(room[:0:whole], sealed...), b), ':')
	if e.digest != (machine.Hash{}) {
		out = enc.AppendEncode(out, e.digest[:])
	}
	out = append(enc.AppendEncode(append(out, ':'), []byte(id)), ':')
	return T(append(out, e.left...)), nil
}

func isSealed[T ~string | ~[]byte](text T) bool {
	return len(text) >= len(sealed) && string(text[:len(sealed)]) == sealed
}

// open returns a body as it was before it was sealed, and as it is when it was not. The error matches ledger.ErrKeys where the key is not to be had.
func open[T ~string | ~[]byte](d *Dialect, text T, at place) (body T, e envelope, err error) {
	if !isSealed(text) {
		return text, e, nil
	}
	parts := strings.SplitN(string(text[len(sealed):]), ":", 4)
	if len(parts) != 4 {
		return body, e, fmt.Errorf("%w: what is sealed has %d parts, not 4", ledger.ErrDamaged, len(parts))
	}
	var decoded [3][]byte
	for i := range decoded {
		b, fault := base64.RawStdEncoding.DecodeString(parts[i])
		decoded[i], err = b, errors.Join(err, fault)
	}
	closed, digest := decoded[0], decoded[1]
	if copy(e.digest[:], digest) != len(digest) || len(digest)%len(e.digest) != 0 {
		err = errors.Join(err, fmt.Errorf("the digest has %d bytes", len(digest)))
	}
	if err != nil {
		return body, e, fmt.Errorf("%w: what is sealed does not decode: %w", ledger.ErrDamaged, err)
	}
	if e.key = string(decoded[2]); parts[3] != "" {
		e.left = json.RawMessage(parts[3])
	}
	under, err := d.under(e.key)
	if err != nil {
		return body, e, err
	}
	b, err := under.Open(nil, nil, closed, at.under(e.key))
	if err != nil {
		return body, e, fmt.Errorf("%w: key %q does not open what it sealed", ledger.ErrDamaged, e.key)
	}
	return T(b), e, nil
}

// box is what seals and opens under a key.
type box struct {
	cipher.AEAD

	key []byte
}

// under returns the box of a key: the last one again where it is the same.
func (d *Dialect) under(id string) (*box, error) {
	if d.Keys == nil {
		return nil, errNoKeys
	}
	key, err := d.Keys.Key(id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask for key %q: %w", id, err)
	case key == nil:
		return nil, fmt.Errorf("%w: key %q was destroyed", ledger.ErrKeys, id)
	case len(key) != ledger.KeySize:
		return nil, fmt.Errorf("key %q has %d bytes, not %d", id, len(key), ledger.KeySize)
	}
	if last := d.box.Load(); last != nil && bytes.Equal(last.key, key) {
		return last, nil
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	b := &box{aead, bytes.Clone(key)}
	d.box.Store(b)
	return b, nil
}

// under are the place and the id of a key as a seal covers them.
func (at *place) under(id string) []byte {
	b := make([]byte, 0, 128)
	b = append(binary.AppendUvarint(b, uint64(len(id))), id...)
	for _, s := range at {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

// What a body belongs to.
func ofSignal(id saga.ID, kind string) place { return place{"signal", id.Saga, id.Work, kind} }
func ofMessage(name, id string) place        { return place{"message", name, id} }
func ofWebhook(o intake.Object) place        { return place{"webhook", o.Source, o.Tenant, o.Type, o.ID} }
func ofRecord(id saga.ID, r *machine.Record, part string) place {
	return place{id.Saga, id.Work, strconv.FormatInt(r.Seq, 10), r.Step, part}
}

// Bodies are what a record has of the world outside, as it is stored.
type Bodies struct{ Body, Snapshot json.RawMessage }

// SealBodies returns the bodies of an entry as they are stored. What retention would leave of them stays readable:
// it tells a duplicate when the key has gone. Where they cannot be sealed the answer says why: others are not held up by it.
func SealBodies(s *Store, e *ledger.Entry) (Bodies, ledger.Answer) {
	all, err := s.db.sealEntry(e)
	switch {
	case err == nil:
		return all, ledger.Answer{}
	case e.Record.Seq == 1:
		return all, ledger.Answer{Result: ledger.Invalid, Err: err}
	}
	return all, ledger.Answer{Result: ledger.Blocked, Err: err} // what came of an attempt is not given up
}

func (d *Dialect) sealEntry(e *ledger.Entry) (Bodies, error) {
	r := &e.Record
	all := Bodies{r.Body, r.Snapshot}
	if !d.sealed.Load() || len(r.Body)+len(r.Snapshot) == 0 {
		return all, nil
	}
	left, digests, err := r.Rest(e.Salt)
	if !bytes.Equal(left, r.Body) && err == nil { // else it is the machine's own
		all.Body, err = d.sealPart(e, "body", envelope{digest: digests.Body, left: left}, r.Body)
	}
	if err == nil {
		all.Snapshot, err = d.sealPart(e, "snapshot", envelope{digest: digests.Snapshot}, r.Snapshot)
	}
	if err != nil {
		if !errors.Is(err, ledger.ErrKeys) {
			err = fmt.Errorf("%w: %w", ledger.ErrKeys, err)
		}
		return Bodies{}, fmt.Errorf("record %d of %s: %w", r.Seq, e.ID, err)
	}
	return all, nil
}

func (d *Dialect) sealPart(e *ledger.Entry, part string, env envelope, body json.RawMessage) (json.RawMessage, error) {
	return seal(d, e.Subject, env, body, ofRecord(e.ID, &e.Record, part))
}

// unseal opens what a record has sealed. Of what it has no key for the record has what retention would leave of it, and lost says so.
func (d *Dialect) unseal(id saga.ID, r *machine.Record) (lost, err error) {
	body, env, err := open(d, r.Body, ofRecord(id, r, "body"))
	switch r.Body = body; {
	case errors.Is(err, ledger.ErrKeys):
		lost, r.Digests.Body, r.Body = err, env.digest, env.left
	case err != nil:
		return nil, err
	}
	snapshot, env, err := open(d, r.Snapshot, ofRecord(id, r, "snapshot"))
	switch r.Snapshot = snapshot; {
	case errors.Is(err, ledger.ErrKeys):
		lost, r.Digests.Snapshot = err, env.digest
	case err != nil:
		return nil, err
	}
	return lost, nil
}

// Receive makes rows of events.
func (d *Dialect) Receive(events []intake.Event) ([]*rows.Incoming, error) {
	ins, err := rows.Receive(events)
	for i := range ins {
		if err == nil {
			ins[i].Body, err = seal(d, "", envelope{}, ins[i].Body, ofWebhook(rows.Object(events[i].Object)))
		}
	}
	return ins, err
}

// openDeliveries opens the bodies of all of which there is the key; the error matches ledger.ErrKeys where there are others.
func (d *Dialect) openDeliveries(ds []intake.Delivery) (err error) {
	for i := range ds {
		body, _, fault := open(d, ds[i].Body, ofWebhook(ds[i].Object))
		ds[i].Body, err = body, errors.Join(err, fault)
	}
	return err
}

// openEntry opens what an entry has of webhooks, as openDeliveries does.
func (d *Dialect) openEntry(e *intake.Entry) (err error) {
	e.Body, _, err = open(d, e.Body, ofWebhook(e.Object))
	for i := range e.Parked {
		body, _, fault := open(d, e.Parked[i].Body, ofWebhook(e.Object))
		e.Parked[i].Body, err = body, errors.Join(err, fault)
	}
	return err
}

// sealedValues are those of an entry as they are stored; plain are those that say the same unsealed.
func (d *Dialect) sealedValues(e *intake.Entry, plain []any) ([]any, error) {
	if !d.sealed.Load() { // its bodies were accepted
		return plain, nil
	}
	out := *e
	out.Parked = slices.Clone(e.Parked)
	bodies := []*json.RawMessage{&out.Body}
	for i := range out.Parked {
		bodies = append(bodies, &out.Parked[i].Body)
	}
	for _, body := range bodies {
		sealed, err := seal(d, "", envelope{}, *body, ofWebhook(e.Object))
		if err != nil {
			return nil, err
		}
		*body = sealed
	}
	return rows.Values(&out)
}

// readable is err without what cannot be opened: who lists bodies has none then.
func readable(err error) error {
	if errors.Is(err, ledger.ErrKeys) {
		return nil
	}
	return err
}
