package webhook

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// Provider is the convention of one sender: how it signs, and what its deliveries say. The
// functions of this package return those we know; one of your own is a value of this type, tested
// by signatures that its sender published.
type Provider struct {
	// name is for people.
	name string
	// SignsTime: the signature covers when the delivery was sent, so that a captured one goes
	// stale.
	signsTime bool
	// HeadersUnsigned: Parse takes a tenant, a type or an id from headers that the signature does
	// not cover. A source of such a provider says which tenant and types it has; see
	// [Sender.Headers].
	headersUnsigned bool
	// key reads a secret as the provider shows it. Its error never contains the secret.
	key func(secret string) (proof, error)
	// claim reads from the header what was signed and by which signatures. It compares nothing. Its
	// error is ErrNoSignature where there is none, and any other where there is one that cannot be
	// read. It is called without the body first, and the body is not read where that fails.
	claim func(h http.Header, body []byte) (claim, error)
	// parse reads what a verified delivery says. An event names its object, topic, payload, version
	// and what makes it the same event as another (Dedupe; zero: its content); the receiver adds
	// the rest. No events and no error: a handshake. An error: it cannot be read, and is stored as
	// malformed.
	parse func(m message) ([]intake.Event, error)
	// several: a delivery holds a list of events.
	several bool
	// greets reports whether an unsigned request is a handshake, to be answered with 200 and
	// forgotten. Nil: the provider has none.
	greets func(h http.Header, body []byte) bool
	// volatile names the fields of a body that change by themselves, for its fingerprint.
	volatile []string

	err error // what is wrong with what it was made from
}

// message is a delivery that was verified.
type message struct {
	Header   http.Header // not all of it is signed
	Body     []byte      // unpacked
	Received time.Time
	Types    []string // Sender.Types: what may be believed of a header that is not signed
}

// claim is what a delivery says about its signatures. A credential is a signature of nothing.
type claim struct {
	Signed     [][]byte // the signed bytes, in pieces
	Signatures []signature
	At         time.Time // the signed time; zero where none is signed
}

// signature is one of those that a delivery carries.
type signature struct {
	Scheme string // v1, v1a; empty where a provider has only one
	Bytes  []byte
}

// proof reports whether one of the claim's signatures is its own. It takes the same time for all of
// them.
type proof func(claim) bool

// maxSignatures bounds the work on one delivery.
const maxSignatures = 16

// What is wrong with a signature before it is computed.
var (
	// errNoSignature is returned by Provider.Claim when there is none.
	errNoSignature = errors.New("there is no signature")

	errBadSignature = errors.New("the signature cannot be read")
)

// validate reports what is missing. A provider that verifies nothing is not accepted.
func (p *Provider) validate() error {
	if p.err != nil {
		return p.err
	}
	if p.name == "" || p.key == nil || p.claim == nil || p.parse == nil {
		return errors.New("its Provider is not complete: Name, Key, Claim and Parse are needed, or unsigned deliveries would be believed")
	}
	return nil
}

// key is a secret that was read.
type key struct {
	name   string
	proves proof
	last   atomic.Int64 // when it was used last, in nanoseconds; 0: never
	count  atomic.Int64
}

func newKey(p Provider, secret Secret) (*key, error) {
	if p.key == nil {
		return nil, nil // said by validate
	}
	if strings.TrimSpace(secret.Text) != secret.Text {
		return nil, errors.New("it has blanks or a line break around it: was it read from a file?")
	}
	proves, err := p.key(secret.Text)
	if err != nil {
		return nil, err
	}
	return &key{name: secret.Name, proves: proves}, nil
}

func (k *key) used(now time.Time) {
	k.count.Add(1)
	k.last.Store(now.UnixNano())
}

// SecretUse says how often a secret signed since the receiver was made. A secret that was replaced
// can be removed when its Last is long ago.
type SecretUse struct {
	Source, Secret string
	Count          int64
	Last           time.Time // zero: never
}

// Secrets returns the use of every secret, sources by name and secrets in their order.
func (r *Receiver) Secrets() []SecretUse {
	var all []SecretUse
	for _, s := range r.sources {
		for _, k := range s.keys {
			u := SecretUse{Source: s.Name, Secret: k.name, Count: k.count.Load()}
			if n := k.last.Load(); n != 0 {
				u.Last = time.Unix(0, n).UTC()
			}
			all = append(all, u)
		}
	}
	slices.SortStableFunc(all, func(a, b SecretUse) int { return strings.Compare(a.Source, b.Source) })
	return all
}

// minSecret is the shortest secret we take, in bytes: what is shorter can be guessed.
const minSecret = 16

// uniform reports whether a key is one byte over and over: a placeholder.
func uniform(key []byte) bool { return bytes.Count(key, key[:1]) == len(key) }

// guessable says why a secret is none, if it is none.
func guessable(secret []byte) error {
	switch {
	case len(secret) < minSecret:
		return fmt.Errorf("it has %d bytes; at least %d are needed, because a signature can be tried against guesses", len(secret), minSecret)
	case uniform(secret):
		return errors.New("it is one byte over and over, which can be guessed")
	}
	return nil
}

// hmacKey returns the key for HMAC-SHA256 signatures of one scheme.
func hmacKey(scheme string, secret []byte) (proof, error) {
	return hmacKeyOf(sha256.New, scheme, secret)
}

// any reports whether a signature is so. All are looked at, whichever it is.
func (c *claim) any(is func(signature) bool) (found bool) {
	for _, s := range c.Signatures {
		found = is(s) || found
	}
	return found
}

// hmacKeyOf returns the key for HMAC signatures of one scheme. The sum is computed once, and every
// candidate is compared with it in constant time.
func hmacKeyOf(hash func() hash.Hash, scheme string, secret []byte) (proof, error) {
	if err := guessable(secret); err != nil {
		return nil, err
	}
	return func(c claim) bool {
		mac := hmac.New(hash, secret)
		for _, piece := range c.Signed {
			mac.Write(piece)
		}
		sum := mac.Sum(nil)
		return c.any(func(s signature) bool { return s.Scheme == scheme && hmac.Equal(s.Bytes, sum) })
	}, nil
}

// credentialKey returns the key for a secret that is shown as it is. Digests are compared, so the
// time does not depend on how much of it is right, nor on its length.
func credentialKey(secret string) (proof, error) {
	if err := guessable([]byte(secret)); err != nil {
		return nil, err
	}
	want := sha256.Sum256([]byte(secret))
	return func(c claim) bool {
		return c.any(func(s signature) bool {
			shown := sha256.Sum256(s.Bytes)
			return subtle.ConstantTimeCompare(shown[:], want[:]) == 1
		})
	}, nil
}

// plainKey is hmacKey for providers whose secret is its text.
func plainKey(secret string) (proof, error) { return hmacKey("", []byte(secret)) }

// ed25519Key returns the key for ed25519 signatures of one scheme.
func ed25519Key(scheme string, public []byte) (proof, error) {
	if len(public) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("the public key has %d bytes; ed25519 has %d", len(public), ed25519.PublicKeySize)
	}
	if uniform(public) {
		return nil, errors.New("the public key is one byte over and over, which is none")
	}
	return func(c claim) bool {
		message := slices.Concat(c.Signed...)
		return c.any(func(s signature) bool { return s.Scheme == scheme && ed25519.Verify(public, message, s.Bytes) })
	}, nil
}
