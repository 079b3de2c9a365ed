package whole

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/saga"
)

// kind is how a shop versions its orders.
type kind struct {
	name string
	step time.Duration // of its clock; 0: it counts
	lag  time.Duration // what is read may be this old
}

var kinds = []kind{
	{name: "counter"},
	{name: "millis", step: time.Millisecond},
	{name: "seconds", step: time.Second},
	{name: "lagging", step: time.Second, lag: 1500 * time.Millisecond},
}

// content is what the shop says of an order.
type content struct {
	Status string `json:"status"` // open, paid, cancelled
	Total  string `json:"total"`
}

// state is what an order is from some time on.
type state struct {
	content

	at      time.Time
	deleted bool // the shop has it no more

	body  json.RawMessage
	print intake.Digest // of the body
}

func (s state) String() string {
	if s.deleted {
		return s.at.Format(time.StampMilli) + " deleted"
	}
	return fmt.Sprintf("%s %s %s", s.at.Format(time.StampMilli), s.Status, s.Total)
}

// order is all that ever happens to one.
type order struct {
	id     string
	key    string
	states []state
	told   bool // somebody is told of the last change
}

// last is what the order is in the end.
func (o *order) last() *state { return &o.states[len(o.states)-1] }

// wanted reports whether the order is to have an invoice in the end.
func (o *order) wanted() bool { return o.last().Status == "paid" && !o.last().deleted }

// at is the number of the state at t, or -1 before the first.
func (o *order) at(t time.Time) int {
	n := len(o.states) - 1
	for n >= 0 && o.states[n].at.After(t) {
		n--
	}
	return n
}

// live makes up what happens to the order: it is paid sooner or later, changed, and some are
// cancelled, sold again after all, or deleted. Many changes come within one second of the one
// before.
func (o *order) live(chance *rand.Rand, at time.Time) {
	now := content{Status: "open", Total: fmt.Sprint(10 + chance.IntN(90))}
	if chance.IntN(3) == 0 {
		now.Status = "paid"
	}
	for n := range 1 + chance.IntN(4) {
		s := state{content: now, at: at.Truncate(time.Millisecond)}
		if n > 0 {
			s.change(chance)
		}
		now = s.content
		o.states = append(o.states, s)
		if s.deleted || s.Status == "cancelled" && chance.IntN(2) == 0 {
			return
		}
		gap := time.Duration(chance.IntN(900)+2) * time.Millisecond
		if chance.IntN(5) < 3 {
			gap = time.Duration(chance.IntN(180)+1) * time.Second
		}
		if now.Status == "cancelled" { // second thoughts take their time
			gap = time.Duration(1+chance.IntN(10)) * time.Minute
		}
		at = at.Add(gap)
	}
	if now.Status == "open" { // nearly everybody pays in the end
		o.states = append(o.states, state{content: content{"paid", now.Total}, at: at.Truncate(time.Millisecond)})
	}
}

func (s *state) change(chance *rand.Rand) {
	switch n := chance.IntN(20); {
	case n == 0:
		s.deleted = true
	case s.Status == "open", s.Status == "cancelled":
		s.Status = "paid"
	case n <= 3:
		s.Status = "cancelled"
	default:
		s.Total = fmt.Sprint(10 + chance.IntN(90))
	}
}

// span is how long the shop is busy.
const span = 20 * time.Minute

// shop is the source of truth.
type shop struct {
	kind
	mood

	orders []*order // by id
	byID   map[string]*order
	empty  bool // it answers as if it had never had an order
}

func newShop(k kind, seed uint64, orders int, began time.Time) *shop {
	chance := rand.New(rand.NewPCG(seed, 1))
	s := &shop{kind: k, mood: mood{chance: rand.New(rand.NewPCG(seed, 3))}, byID: map[string]*order{}}
	for i := range orders {
		id := fmt.Sprintf("%05d", i)
		o := &order{id: id, key: "shop:order:" + id}
		o.live(chance, began.Add(time.Duration(chance.Int64N(int64(span)))))
		o.print()
		s.orders, s.byID[id] = append(s.orders, o), o
	}
	return s
}

var errBusy, errAway, errNotUs = errors.New("429 too many requests"), errors.New("503 service unavailable"), errors.New("403 forbidden")

// mood is how somebody answers.
type mood struct {
	mu     sync.Mutex
	chance *rand.Rand
	calm   bool // it answers everything, at once and truly
	better bool // it seldom refuses
	calls  int
}

func (m *mood) lock() func() {
	m.mu.Lock()
	return m.mu.Unlock
}

// draw says of one call how long it takes, what is answered instead of the truth, and a number from
// 0 up to 1 for what else is left to chance.
func (m *mood) draw() (took time.Duration, luck float64, fault error) {
	defer m.lock()()
	m.calls++
	took, luck = time.Duration(5+m.chance.IntN(300))*time.Millisecond, m.chance.Float64()
	of := 60
	if m.better {
		of *= 8
	}
	if n := m.chance.IntN(of); !m.calm && n < 4 {
		fault = []error{saga.RetryAfter(time.Duration(1+m.chance.IntN(3))*time.Second, errBusy), errAway, errNotUs, context.DeadlineExceeded}[n]
	}
	return took, luck, fault
}

func (m *mood) isCalm() bool {
	defer m.lock()()
	return m.calm
}

// ask is one question to the shop. It returns the time as of which it is answered, which may be a
// while ago.
func (s *shop) ask(ctx context.Context) (as time.Time, luck float64, err error) {
	took, luck, fault := s.draw()
	if err := pause(ctx, took); err != nil {
		return as, luck, err
	}
	return time.Now().Add(-time.Duration(luck * float64(s.lag))), luck, fault
}

// shows is the number of the state that the shop shows as of some time, or -1 when it shows none.
func (s *shop) shows(o *order, as time.Time) int {
	if n := o.at(as); n >= 0 && !o.states[n].deleted && !s.empty {
		return n
	}
	return -1
}

// object is the order in its n-th state.
func (s *shop) object(o *order, n int) *scan.Listed {
	is := &o.states[n]
	return &scan.Listed{ID: o.id, Version: s.version(o, n), Created: o.states[0].at, Changed: s.stamp(o, n), Body: is.body}
}

// print writes the bodies of all states.
func (o *order) print() {
	for n := range o.states {
		s := &o.states[n]
		var err, failed error
		s.body, err = json.Marshal(s.content)
		s.print, failed = intake.Fingerprint(s.body)
		if err = errors.Join(err, failed); err != nil {
			panic(err)
		}
	}
}

// stamp is when the shop says that the order changed.
func (s *shop) stamp(o *order, n int) time.Time {
	return o.states[n].at.Truncate(max(s.step, time.Millisecond))
}

func (s *shop) version(o *order, n int) intake.Version {
	if s.step == 0 {
		return intake.Counter(int64(n + 1))
	}
	return intake.At(s.stamp(o, n), s.step)
}

// tied reports whether the order changed twice within one tick of the shop's clock.
func (s *shop) tied(o *order) bool {
	for n := 1; n < len(o.states); n++ {
		if s.step > 0 && s.stamp(o, n).Equal(s.stamp(o, n-1)) {
			return true
		}
	}
	return false
}

var object = intake.Object{Source: "shop", Type: "order"}

// fetch is a question about one order.
func (s *shop) fetch(ctx context.Context, id string) (*scan.Listed, error) {
	as, _, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	o := s.byID[id]
	if n := s.shows(o, as); n >= 0 {
		return s.object(o, n), nil
	}
	return nil, nil
}

// changed lists what changed since a time, in the order of changes.
func (s *shop) changed(ctx context.Context, q scan.Query) (p scan.Page, err error) {
	as, luck, err := s.ask(ctx)
	if err != nil {
		return p, err
	}
	type row struct {
		place string // in the listing
		o     *order
		n     int
	}
	var found []row
	for _, o := range s.orders {
		n := s.shows(o, as)
		if n < 0 {
			continue
		}
		changed := s.stamp(o, n)
		if place := strconv.FormatInt(changed.UnixNano(), 10) + "/" + o.id; !changed.Before(q.Since) && place > q.Cursor { // all times have as many digits
			found = append(found, row{place, o, n})
		}
	}
	slices.SortFunc(found, func(a, b row) int { return strings.Compare(a.place, b.place) })
	if len(found) > q.Limit {
		found, p.Next = found[:q.Limit], found[q.Limit-1].place
	}
	for _, f := range found {
		p.Objects = append(p.Objects, *s.object(f.o, f.n))
	}
	p.Objects, p.Next = cut(&s.mood, luck, p.Objects, p.Next)
	return p, nil
}

// cut ends a listing early at times, or shows nothing, without a word.
func cut[T any](m *mood, luck float64, rows []T, next string) ([]T, string) {
	switch {
	case m.isCalm():
	case luck < 0.02:
		return nil, ""
	case luck < 0.04:
		return rows[:len(rows)/2], ""
	}
	return rows, next
}

// partOf is the part of a listing in which a thing is.
func partOf(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // it never fails
	return fmt.Sprint(h.Sum32() % 3)
}

// partitions counts the orders of each part.
func (s *shop) partitions(ctx context.Context) ([]reconcile.Partition, error) {
	as, _, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	parts := []reconcile.Partition{{Name: "0"}, {Name: "1"}, {Name: "2"}}
	for _, o := range s.orders {
		if s.shows(o, as) >= 0 {
			parts[partOf(o.id)[0]-'0'].Count++
		}
	}
	return parts, nil
}

// all lists a part by id.
func (s *shop) all(ctx context.Context, q scan.Query) (p scan.Page, err error) {
	as, luck, err := s.ask(ctx)
	if err != nil {
		return p, err
	}
	for _, o := range s.orders {
		n := s.shows(o, as)
		if n < 0 || o.id <= q.Cursor || partOf(o.id) != q.Partition {
			continue
		}
		if len(p.Objects) == q.Limit {
			p.Next = p.Objects[q.Limit-1].ID
			break
		}
		p.Objects = append(p.Objects, *s.object(o, n))
	}
	p.Objects, p.Next = cut(&s.mood, luck, p.Objects, p.Next)
	return p, nil
}

// pause waits in the world's time.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
