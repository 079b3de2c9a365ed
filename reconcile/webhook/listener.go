package webhook

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/intake"
)

// Listener is told what happens. Nil fields are skipped. The functions are called from many
// goroutines, must not block and must not change what they are given. Sources are named as they
// were configured; the name that a stranger made up is never passed on.
type Listener struct {
	// Stored: what a delivery said is durable in the inbox. Some of its events may already have a
	// disposition.
	Stored func(source string, events int, took time.Duration)
	// Refused: a delivery was not accepted. The source is empty when there is none of the name.
	Refused func(source string, why Refusal, status int)
	// Greeted: an unsigned handshake was answered.
	Greeted func(source string)
	// ClockAlarm: genuine deliveries fail for their signed time and nothing else comes through, so
	// our clock is probably wrong. The skew is the median of how far they were ahead of it.
	// Everything is refused until the clock is right; what was missed meanwhile is for a sweep to
	// find.
	ClockAlarm func(source string, skew time.Duration, deliveries int)
}

// refusalLog writes one line per source and reason a minute. A flood of forged deliveries is not a
// flood of lines, and nothing that a sender chose is in any of them.
type refusalLog struct {
	log logrus.FieldLogger
	now func() time.Time

	mu       sync.Mutex
	classes  map[class]*quiet
	deadline bool // that there is none was said
}

type class struct {
	source string
	reason Refusal
}

// quiet is the time in which a class is only counted.
type quiet struct {
	until   time.Time
	skipped int
}

const logEvery = time.Minute

// tally gathers refusals and stores how many there were: a flood of forged deliveries costs a statement a second for each class.
type tally struct {
	inbox intake.Inbox

	mu     sync.Mutex
	counts map[class]int64 // nil: no store is due
}

const (
	tallyEvery  = time.Second
	tallyWithin = 15 * time.Second
)

func (t *tally) count(c class) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[class]int64)
		time.AfterFunc(tallyEvery, t.store)
	}
	t.counts[c]++
}

// store stores what was gathered. Rather too few than too many: what fails may be stored, and the log has all.
func (t *tally) store() {
	t.mu.Lock()
	counts := t.counts
	t.counts = nil
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), tallyWithin)
	defer cancel()
	var all sync.WaitGroup
	for c, n := range counts {
		all.Go(func() { _ = t.inbox.Blocked(ctx, intake.ByRefusal(string(c.reason)), c.source, n) })
	}
	all.Wait()
}

func newRefusalLog(o *Options) *refusalLog {
	return &refusalLog{log: o.Log, now: o.Now, classes: make(map[class]*quiet)}
}

func (l *refusalLog) refused(source string, why *refusal) {
	skipped, ok := l.speak(class{source, why.reason})
	if !ok {
		return
	}
	entry := l.log.WithFields(logrus.Fields{
		"source": source, "reason": string(why.reason), "status": why.reason.Status(), "not_logged": skipped,
	})
	switch why.reason {
	case NotStored:
		entry.WithError(why.err).Error("a genuine webhook could not be stored; its sender was asked to come again")
	case LargeBody:
		entry.Error("a webhook is larger than Sender.MaxBody; its sender will not make it smaller")
	case TooOld, TooNew:
		entry.WithField("skew", why.skew.String()).Warn("a genuine webhook was refused for its signed time")
	default:
		entry.Warn("webhook refused")
	}
}

// speak reports whether a line may be written for a class, and how many were not since the last.
func (l *refusalLog) speak(c class) (skipped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q, now := l.classes[c], l.now()
	if q != nil && now.Before(q.until) {
		q.skipped++
		return 0, false
	}
	if q != nil {
		skipped = q.skipped
	}
	l.classes[c] = &quiet{until: now.Add(logEvery)}
	return skipped, true
}

// kept says that a delivery was taken from some events of which nothing follows. Their reasons quote what the
// sender wrote, and stand in the inbox.
func (l *refusalLog) kept(source string, as intake.Disposition, events int, level logrus.Level, words string) {
	if events == 0 {
		return
	}
	if skipped, ok := l.speak(class{source, Refusal(as)}); ok {
		l.log.WithFields(logrus.Fields{"source": source, "events": events, "not_logged": skipped}).Log(level, words)
	}
}

func (l *refusalLog) clockAlarm(source string, skew time.Duration, deliveries int) {
	l.log.WithFields(logrus.Fields{"source": source, "skew": skew.String(), "deliveries": deliveries}).
		Error("every genuine webhook fails for its signed time: this machine's clock is probably wrong; webhooks are refused until it is right")
}

// serverLog is the log of an [http.Server]: a line a minute for each kind of trouble, and nothing that
// a stranger chose.
type serverLog struct{ log *refusalLog }

func (l serverLog) Write(p []byte) (int, error) {
	text := strings.TrimSpace(string(p))
	kind, level := "server", logrus.ErrorLevel // such as a panic, or too many open files
	if rest, ok := strings.CutPrefix(text, "http: TLS handshake error from "); ok {
		kind, level = "handshake", logrus.WarnLevel
		text = "a TLS handshake failed"
		if _, why, ok := strings.Cut(rest, "tls: "); ok {
			end := strings.IndexAny(why+":", `:("`) // what follows may be a name that the other side sent
			text += ": " + strings.TrimSpace(why[:end])
		}
	}
	if skipped, ok := l.log.speak(class{reason: Refusal(kind)}); ok {
		l.log.log.WithFields(logrus.Fields{"reason": kind, "not_logged": skipped}).Log(level, text)
	}
	return len(p), nil
}

// noDeadline says once that slow bodies cannot be stopped.
func (l *refusalLog) noDeadline() {
	l.mu.Lock()
	said := l.deadline
	l.deadline = true
	l.mu.Unlock()
	if !said {
		l.log.Warn("the server in front of the webhook receiver sets no read deadlines, so a slow body holds its place: " +
			"a middleware that wraps the ResponseWriter needs an Unwrap method")
	}
}
