package coordinator

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/ledger"
)

// outage tells people that the ledger does not answer: when it begins, at most once a minute while
// it lasts, and when it is over. It also knows since when what moves works (a record, a claim, the
// load of a chain, a return) has been waiting for its answer.
type outage struct {
	log logrus.FieldLogger

	mu      sync.Mutex
	failing map[call]time.Time // since when
	began   time.Time
	said    time.Time
	asked   map[*time.Time]struct{} // when each record or claim that has no answer yet was first sent
}

// call names what was asked of the ledger.
type call string

const (
	callOpen   call = "open session"
	callRenew  call = "renew session"
	callAppend call = "append"
	callClaim  call = "claim"
	callLoad   call = "load"
	callBack   call = "give back"

	callDescribe call = "register"

	callControls call = "controls"
)

// sayEvery is how often a condition that lasts is logged.
const sayEvery = time.Minute

func newOutage(log logrus.FieldLogger) *outage {
	return &outage{log: log, failing: map[call]time.Time{}, asked: map[*time.Time]struct{}{}}
}

// failed notes that a call was not answered.
func (o *outage) failed(what call, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if len(o.failing) == 0 {
		o.began = now
	}
	if o.failing[what].IsZero() {
		o.failing[what] = now
	}
	if !o.said.IsZero() && now.Sub(o.said) < sayEvery {
		return
	}
	o.said = now
	log := o.log.WithError(err).WithField("call", string(what)).WithField("since", now.Sub(o.began).String())
	if errors.Is(err, ledger.ErrSchema) {
		log.Error("the ledger's schema does not fit this program; nothing is claimed or sent until it does, so deploy the program that does")
		return
	}
	if what == callOpen && errors.Is(err, ledger.ErrKeys) {
		log.Error("the bodies of the ledger are sealed, and this program has no keys; nothing is claimed or sent until it is started with them")
		return
	}
	log.Warn("the ledger does not answer; the same call is repeated until it does")
}

// answered notes that a call was answered. The outage is over when every kind of call that failed
// is answered.
func (o *outage) answered(what call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failing[what].IsZero() {
		return
	}
	if delete(o.failing, what); len(o.failing) > 0 {
		return
	}
	o.log.WithField("lasted", time.Since(o.began).String()).Info("the ledger answers again")
	if time.Since(o.began) > sayEvery {
		o.said = time.Time{} // the next one is another
	}
}

// lasts is for how long the ledger has not answered, 0 when it does.
func (o *outage) lasts() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.failing) == 0 {
		return 0
	}
	return time.Since(o.began)
}

// opened notes that a session was opened: whatever failed under the last one is over.
func (o *outage) opened() {
	o.mu.Lock()
	calls := slices.Collect(maps.Keys(o.failing))
	o.mu.Unlock()
	for _, what := range calls {
		o.answered(what)
	}
}

// ask begins a record's or a claim's wait for its answer; over ends it.
func (o *outage) ask() (over func()) {
	since := time.Now()
	o.mu.Lock()
	o.asked[&since] = struct{}{}
	o.mu.Unlock()
	return func() {
		o.mu.Lock()
		delete(o.asked, &since)
		o.mu.Unlock()
	}
}

// unanswered is how long the oldest of them has been waiting, counted from a moment on.
func (o *outage) unanswered(from time.Time) (longest time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for since := range o.asked {
		longest = max(longest, time.Since(latest(*since, from)))
	}
	return longest
}

var errUnanswered = errors.New("a record, a claim, a load or a return has had no answer for longer than a lease")
