package webhook

import (
	"cmp"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/amends-dev/amends/internal/faults"
)

// Sender is who sends the webhooks of a source: it is the Webhooks of an [inbox.Source]. The name
// of the source is the last part of their path: lower case letters, digits, - and _.
type Sender struct {
	// Provider is how it signs and what its deliveries say.
	Provider Provider
	// Secrets are those that are valid now: one, or two while one replaces the other. At least one.
	Secrets []Secret
	// Tenants are the accounts that we know within the source. A delivery that names another is
	// stored as unknown, and nothing comes of it until it is replayed. AnyTenant lets all of them
	// in.
	Tenants []string
	// Types are the types of objects that are wanted; others are stored as unknown. Empty: all,
	// where the provider signs what names the type.
	Types []string
	// Headers says what is believed of headers that the provider does not sign
	// (package comment, Headers are not signed). As it is left, one tenant and the wanted Types have to be
	// named.
	Headers Headers
	// State says whether the source is open.
	State State
	// Tolerance is how far the signed time may lie from our clock on either side, where the
	// provider signs one. Default: 5 min. NoTolerance switches the check off.
	Tolerance time.Duration
	// Epoch is raised when the source begins to count its versions again: after a restore, or when
	// its objects are made again under old ids. Versions of an earlier epoch are older than all of
	// a later one. Fetch has to give its versions the same epoch.
	Epoch int64

	// MaxBody bounds a body in bytes, unpacked or not. Default: 1 MiB.
	MaxBody int64
	// Concurrent is how many deliveries, after they were verified, are in hand at once; further
	// ones wait shortly. The memory for bodies, verified or not, packed and unpacked, is as many
	// times MaxBody, and at least four times. Those that are not verified yet have half of it, and
	// at least three times MaxBody. Default: 64.
	Concurrent int
	// PerSecond and Burst bound how many genuine deliveries are stored. 0: no limit. Burst is at
	// least 1.
	PerSecond float64
	Burst     int

	volatile []string  // of the source's policy
	begin    time.Time // of the source
}

// Secret is one that a source may sign with. It prints as its name.
type Secret struct {
	Name string // for people and records: 2026-11
	Text string // as the provider shows it
}

// String returns the name.
func (s Secret) String() string { return "secret " + s.Name }

// GoString returns the name.
func (s Secret) GoString() string { return s.String() }

// MarshalText returns the name, so that no encoder writes the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Headers says what is believed of headers that are not signed: a captured delivery can be sent
// again with any other.
type Headers string

// What may be believed of headers.
const (
	HeadersDoubted Headers = ""        // nothing but what the body says, too
	HeadersHint    Headers = "hint"    // the tenant, for a hint: the source of that tenant is asked about every delivery
	HeadersTrusted Headers = "trusted" // the tenant: only the sender can set them, as on a private network
)

// State says whether a source is open.
type State string

// The states of a source.
const (
	Open     State = ""         // verified, stored and answered with 200
	Hidden   State = "hidden"   // 404, as a source that does not exist
	Ignoring State = "ignoring" // verified, stored as ignored and answered with 200: the sender loses nothing and stays subscribed
	Refusing State = "refusing" // verified and answered with 503: the sender keeps what it has and comes again
)

const (
	// AnyTenant in Sender.Tenants lets all tenants in.
	AnyTenant = "*"
	// NoTolerance as Sender.Tolerance accepts signed times however old, and so replays of any age.
	// Then only the inbox and the gate protect.
	NoTolerance time.Duration = -1

	defaultTolerance  = 5 * time.Minute
	defaultMaxBody    = 1 << 20
	defaultConcurrent = 64
	maxMaxBody        = 1 << 30
	maxConcurrent     = 1 << 20
	maxSecrets        = 8
)

// Validate reports everything that is wrong with the webhooks of the source of that name, in one
// error.
func (c *Sender) Validate(source string) error {
	_, err := newSource(named{source, *c})
	return err
}

// named is the sender of the source of that name.
type named struct {
	Name string
	Sender
}

// source is one that was found to be in order, and what it counts.
type source struct {
	named
	keys    []*key
	clock   *clockWatch
	limit   *rate.Limiter
	slots   chan struct{} // verified deliveries in hand
	storing chan struct{} // calls of the inbox
	memory  *room
}

func newSource(c named) (*source, error) {
	c.Secrets, c.Tenants, c.Types = slices.Clone(c.Secrets), slices.Clone(c.Tenants), slices.Clone(c.Types)
	if c.Tolerance == 0 && c.Provider.signsTime {
		c.Tolerance = defaultTolerance
	}
	c.MaxBody = cmp.Or(c.MaxBody, defaultMaxBody)
	c.Concurrent = cmp.Or(c.Concurrent, defaultConcurrent)
	wrong := faults.List{c.validate(), c.Provider.validate()}
	s := &source{named: c, clock: &clockWatch{}, limit: rate.NewLimiter(rate.Inf, 0)}
	for i, secret := range c.Secrets {
		k, err := newKey(c.Provider, secret)
		wrong.Whenf(err != nil, "secret %d (%q): %w", i+1, secret.Name, err)
		s.keys = append(s.keys, k)
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if c.PerSecond > 0 {
		s.limit = rate.NewLimiter(rate.Limit(c.PerSecond), max(1, c.Burst))
	}
	s.slots = make(chan struct{}, c.Concurrent)
	s.storing = make(chan struct{}, c.Concurrent)
	s.memory = newRoom(c.Concurrent, c.MaxBody+1)
	return s, nil
}

var names = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// validate reports everything that is wrong, in one error.
func (c *named) validate() error {
	var f faults.List
	f.Whenf(!names.MatchString(c.Name),
		"its name must be lower case letters, digits, - and _, at most 63, because it is part of a path")
	f.Whenf(len(c.Secrets) == 0, "it has no secret: nothing could be verified, so nothing would be accepted")
	f.Whenf(len(c.Secrets) > maxSecrets, "it has %d secrets; at most %d are tried", len(c.Secrets), maxSecrets)
	seen := make(map[string]bool)
	for _, secret := range c.Secrets {
		f.Whenf(secret.Name == "" || seen[secret.Name],
			"every secret needs a name of its own, to say which one is still in use; %q is none", secret.Name)
		seen[secret.Name] = true
	}
	f.Whenf(!slices.Contains([]State{Open, Hidden, Ignoring, Refusing}, c.State), "State is %q, which is none", c.State)
	f.Whenf(c.Tolerance < 0 && c.Tolerance != NoTolerance, "Tolerance is %s; to switch the check off say NoTolerance", c.Tolerance)
	f.Whenf(c.Tolerance != 0 && !c.Provider.signsTime, "Tolerance is set, but %s signs no time", c.Provider.name)
	c.validateHeaders(&f)
	f.Whenf(c.Epoch < 0, "Epoch is %d; it must not be negative", c.Epoch)
	f.Whenf(c.MaxBody < 0 || c.MaxBody > maxMaxBody, "MaxBody is %d; it lies between 0 and %d", c.MaxBody, maxMaxBody)
	f.Whenf(c.Concurrent < 0 || c.Concurrent > maxConcurrent, "Concurrent is %d; it lies between 0 and %d", c.Concurrent, maxConcurrent)
	f.Whenf(c.PerSecond < 0 || c.Burst < 0, "PerSecond and Burst must not be negative")
	return f.Err()
}

func (s *source) name() string {
	if s == nil {
		return "" // what a stranger asked for is neither counted nor logged
	}
	return s.Name
}

// enter takes a place among the verified deliveries in hand, and waits for one if there is none.
func (s *source) enter(wait time.Duration) bool {
	select {
	case s.slots <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case s.slots <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

func (s *source) leave() { <-s.slots }

// claim reads the signatures, and says what is wrong with them before anything is computed.
func (s *source) claim(h http.Header, body []byte) (claim, *refusal) {
	c, err := s.Provider.claim(h, body)
	switch {
	case errors.Is(err, errNoSignature):
		return c, refuse(NoSignature)
	case err != nil || len(c.Signatures) > maxSignatures:
		return c, refuse(BadSignature)
	case len(c.Signatures) == 0:
		return c, refuse(NoSignature)
	case s.Provider.signsTime && c.At.IsZero():
		return c, refuse(BadSignature)
	}
	return c, nil
}

// maxGreeting bounds an unsigned handshake in bytes.
const maxGreeting = 1 << 10

// readable is how much of a body is read, or why nothing is: without a signature that can be read
// it would not be believed, whatever it says.
func (s *source) readable(req *http.Request) (int64, *refusal) {
	_, why := s.claim(req.Header, nil)
	switch {
	case why == nil:
		return s.MaxBody, nil
	case why.reason == NoSignature && s.Provider.greets != nil && req.ContentLength <= maxGreeting:
		return min(maxGreeting, s.MaxBody), nil
	}
	return 0, why
}

// verify returns the key that signed a delivery, or why it is not believed. Whether the signature
// is genuine is found out first: an unsigned time says nothing.
func (s *source) verify(h http.Header, body []byte, now time.Time) (*key, *refusal) {
	c, why := s.claim(h, body)
	if why != nil {
		return nil, why
	}
	var signer *key
	for _, k := range s.keys {
		if k.proves(c) && signer == nil {
			signer = k
		}
	}
	if signer == nil {
		return nil, refuse(WrongSignature)
	}
	if s.Provider.signsTime && s.Tolerance != NoTolerance {
		return signer, judge(c.At.Sub(now), s.Tolerance)
	}
	return signer, nil
}

// judge compares a signed time with our clock.
func judge(skew, tolerance time.Duration) *refusal {
	switch {
	case skew < -tolerance:
		return &refusal{reason: TooOld, skew: skew}
	case skew > tolerance:
		return &refusal{reason: TooNew, skew: skew}
	}
	return nil
}
