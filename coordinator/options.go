package coordinator

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/program"
)

// Options configures a [Coordinator]. The zero value, or nil, is a good configuration; each field
// says its default.
type Options struct {
	// Log receives one line per state change: what needs a person is an error, what heals by itself a warning, the end of an instance and
	// what was said to it, by a person or as an answer, info, and every other step debug. Default: logrus' standard logger. Bodies are never logged.
	Log logrus.FieldLogger
	// Listener is told what happens, for metrics and tests. Default: none.
	Listener *Listener

	// Destinations limits what is sent to whom, by the names given to Action.To. A limit holds for
	// all processes of the ledger together, if all are told the same one: see [Limit]. Where any is
	// given, every name that a step uses has to be here, with a zero Limit if it has none: a
	// misspelt one is an error when the saga is registered.
	Destinations map[string]Limit

	// MaxWorks is how many works this process holds at once, and MaxBytes how large their inputs
	// and results are together; a claim that is under way may bring a few more. Further ones are
	// stored and taken up when there is room. So are new ones beyond a quarter of MaxWorks while
	// the ledger has more than there is room for. As many starts may wait for the ledger's answer, in
	// a quarter of MaxBytes; further ones are refused with [ErrBusy]. 4096 and 256 MiB are for fast
	// destinations: what is in hand goes forward together, so a process with slow ones finishes
	// sooner with fewer.
	MaxWorks int
	MaxBytes int64
	// MaxBatch is how many records one transaction carries at most, and Writers how many
	// transactions are under way at once. 512 and 2. MaxBatch 1 is group commit switched off.
	MaxBatch int
	Writers  int

	// Lease is how long this process may be silent before others take its works over. It is renewed
	// three times in that span, and this process stops trusting it Margin before its end: it sends
	// nothing then, and at the end it stops waiting for answers. 15 s and 2 s; why, and what waits for
	// how long after a kill, is in package saga.
	Lease  time.Duration
	Margin time.Duration
	// Poll is how often due, orphaned and spoken-to works are looked for: half as often on Postgres while there are none and
	// the others can tell what they have. 500 ms.
	Poll time.Duration
	// Hold is the longest wait for which a work is kept in hand, be it for a time or for a
	// destination; for longer ones it is put back into the ledger, where any process picks it up
	// when it is due. 5 s.
	Hold time.Duration
	// MaxCrashes is how often a step may have been in flight when its process died before a person
	// is asked. Until then it pauses for longer each time. 20.
	MaxCrashes int
	// Drain is how long Run waits at shutdown for attempts that may already have been sent. 30 s.
	Drain time.Duration
	// Label names this process to people who read the sessions. Default: host and pid.
	Label string

	// CallbackSecrets make the tokens that callbacks carry ([saga.Call.CallbackToken]); each has 16 bytes at least, and all
	// processes of a ledger have the same. The first makes new ones. To change it put another before it; the old one
	// stays while requests of before may be sent again or called back. A saga that hands out tokens is refused without one.
	CallbackSecrets [][]byte

	hook *hook // in tests
}

// Limit is what a destination can bear from all processes of a ledger. Each that sends there has a
// share of it, in whole parts, of which there are as many as the smaller of Concurrent and Burst:
// with Concurrent: 1 one process at a time sends, one request at a time. The shares are made even
// at every heartbeat. What a process leaves when it dies passes on when the requests that it had under way
// have had their timeout and settle time; at a stop that is when the last one was answered.
// Processes that know different definitions take turns where there are fewer parts than processes.
//
// An attempt without an answer keeps its slot until it has settled, because its request may still
// be at work; but all of them together a quarter of the slots at most, and one at least. [saga.Answered] says that it is not.
// An instance that had no answer comes again when no other stands in line.
//
// Compensations are sent first, then what is furthest along, then what came first.
type Limit struct {
	PerSecond  float64 // sends a second; 0: no limit
	Burst      int     // sends at once after a pause; at least 1
	Concurrent int     // attempts at the same time; 0: no limit
}

// reaches reports every step that names a destination which is not configured, where any are: a
// misspelt name would have no limit, silently. So it does every request whose callback token there is no secret for.
func (o *Options) reaches(spec *program.Spec) error {
	var faults []error
	for i := range spec.Steps {
		step := &spec.Steps[i]
		if _, known := o.Destinations[step.Destination]; len(o.Destinations) > 0 && step.Destination != "" && !known {
			faults = append(faults, fmt.Errorf("step %q goes to %q, which Options.Destinations does not name (it names %s); "+
				"one without a limit is named with a zero Limit", step.Name, step.Destination, strings.Join(slices.Sorted(maps.Keys(o.Destinations)), ", ")))
		}
		if step.Answer != nil && step.Answer.Callback != "" && len(o.CallbackSecrets) == 0 {
			faults = append(faults, fmt.Errorf("the request of step %q carries a callback token, and Options.CallbackSecrets has no secret to make it with", step.Answer.Callback))
		}
	}
	return errors.Join(faults...)
}

// withDefaults returns a copy of o with every zero field filled in. o may be nil.
func (o *Options) withDefaults() Options {
	c := *cmp.Or(o, new(Options))
	if c.Log == nil {
		c.Log = logrus.StandardLogger()
	}
	if c.Listener == nil {
		c.Listener = &Listener{}
	}
	c.MaxWorks = cmp.Or(c.MaxWorks, 4096)
	c.MaxBytes = cmp.Or(c.MaxBytes, 256<<20)
	c.MaxBatch = cmp.Or(c.MaxBatch, 512)
	c.Writers = cmp.Or(c.Writers, 2)
	c.Lease = cmp.Or(c.Lease, 15*time.Second)
	c.Margin = cmp.Or(c.Margin, min(2*time.Second, c.Lease/5))
	c.Poll = cmp.Or(c.Poll, 500*time.Millisecond)
	c.Hold = cmp.Or(c.Hold, 5*time.Second)
	c.MaxCrashes = cmp.Or(c.MaxCrashes, 20)
	c.Drain = cmp.Or(c.Drain, 30*time.Second)
	if c.Label == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown host"
		}
		c.Label = fmt.Sprintf("%s pid %d", host, os.Getpid())
	}
	return c
}

// atMost is n, or the ledger's limit where that is lower. 0 is no limit.
func atMost(n, limit int) int {
	if limit > 0 {
		return min(n, limit)
	}
	return n
}

// validate reports every fault at once. The clocks of the ledger's nodes are up to skew apart.
func (o *Options) validate(skew time.Duration) error {
	var faults []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	wrong(o.MaxWorks < 1, "MaxWorks is %d; at least 1 is needed", o.MaxWorks)
	wrong(o.MaxBytes < 1, "MaxBytes is %d; at least 1 is needed", o.MaxBytes)
	wrong(o.MaxCrashes < 1, "MaxCrashes is %d; at least 1 is needed", o.MaxCrashes)
	wrong(o.MaxBatch < 1, "MaxBatch is %d; at least 1 is needed", o.MaxBatch)
	wrong(o.Writers < 1, "Writers is %d; at least 1 is needed", o.Writers)
	wrong(o.Lease < 100*time.Millisecond, "Lease is %s; below 100ms every hiccup is a take-over", o.Lease)
	wrong(o.Margin < 0 || o.Margin > o.Lease/2, "Margin is %s; it must lie between 0 and half the Lease (%s)", o.Margin, o.Lease)
	wrong(o.Margin < 2*skew || o.Margin+skew > o.Lease/2, "Margin is %s and Lease %s, where the clocks of the ledger's nodes may be %s apart: "+
		"others could take over what is still trusted here. Margin must be %s at least, and Lease %s", o.Margin, o.Lease, skew, 2*skew, 10*skew)
	for name, d := range map[string]time.Duration{"Poll": o.Poll, "Hold": o.Hold, "Drain": o.Drain} {
		wrong(d < 0, "%s is %s; it must not be negative", name, d)
	}
	for i, secret := range o.CallbackSecrets {
		wrong(len(secret) < 16, "CallbackSecrets[%d] has %d bytes; a secret that cannot be guessed has 16 at least, made by a random generator", i, len(secret))
	}
	for name, l := range o.Destinations {
		wrong(l.PerSecond < 0 || l.Burst < 0 || l.Concurrent < 0, "the limit of destination %q has a negative number", name)
	}
	if len(faults) > 0 {
		return fmt.Errorf("coordinator options:\n%w", errors.Join(faults...))
	}
	return nil
}
