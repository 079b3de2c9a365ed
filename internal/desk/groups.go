package desk

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// Instances that stand where they do for the same cause.

// Group are instances of a saga that stand at the same step for the same reason and with the same error.
type Group struct {
	Saga   string      `json:"saga"`
	Status saga.Status `json:"status"`
	Reason saga.Reason `json:"reason"` // of a review
	Step   string      `json:"step"`
	Error  string      `json:"error"` // what it failed with last, without what differs from one to the next (…); "": nothing failed
	Count  int         `json:"count"`
	Oldest *time.Time  `json:"oldestUpdatedAt"` // since when the oldest stands so
	Sample []string    `json:"sample"`          // the work ids of a few, the oldest first
	Filter Filter      `json:"filter"`          // selects them for a batch, see amends help retry; null: none selects them alone

	Heads []Head `json:"-"` // the oldest first
}

// Groups are what a filter selects by cause, the most first.
type Groups struct {
	Items []Group `json:"items"`
	More  bool    `json:"more"` // more match than were looked at
}

// GroupsIn narrows what is grouped: what is in review, unless it says something else.
type GroupsIn struct {
	ListIn
	N, After, Newest struct{} `flag:"-"` // it has no pages

	Most int `query:"most" flag:"-" doc:"look at so many of them; 0: 2000"`
}

// mostLooked is how many instances are looked at for what they failed with.
const mostLooked = 2000

// Groups reads what a filter selects by cause.
func (d *Desk) Groups(ctx context.Context, in *GroupsIn) (*Groups, error) {
	most := cmp.Or(in.Most, mostLooked)
	in.Review = in.Review || in.Status == "" && in.Reason == ""
	in.ListIn.Defaults()
	f, err := in.filter(d.now())
	if err != nil {
		return nil, err
	}
	k, err := d.whoKnows(ctx, false)
	if err != nil {
		return nil, err
	}
	g := &Groups{Items: []Group{}}
	f.Limit, f.After = min(most, 500), ""
	for n, more := 0, true; more; n += f.Limit {
		page, err := d.db.List(ctx, f)
		if err != nil {
			return nil, err
		}
		errors, err := d.errorsOf(ctx, k, page.Instances)
		if err != nil {
			return nil, err
		}
		for i := range page.Instances {
			h := &page.Instances[i]
			if e := errors[h.ID]; h.ID.Saga != coordinator.BatchSaga && e.have(in.Error) {
				g.add(k.head(h), e.alike)
			}
		}
		if f.After, more = page.Next, page.Next != ""; more && n+f.Limit >= most {
			g.More, more = true, false
		}
	}
	for i := range g.Items {
		one := &g.Items[i]
		one.sum(&in.ListIn)
		if one.Step == "" && slices.ContainsFunc(g.Items, one.alike) { // a filter cannot say that it is at no step
			one.Filter = nil
		}
	}
	slices.SortStableFunc(g.Items, func(a, b Group) int { return cmp.Or(b.Count-a.Count, At(a.Oldest).Compare(At(b.Oldest))) })
	return g, nil
}

func (g *Groups) add(h Head, text string) {
	one := First(g.Items, func(g *Group) bool {
		return g.Saga == h.Saga && g.Status == h.Status && g.Reason == h.Reason && g.Step == h.Step && g.Error == text
	})
	if one == nil {
		g.Items = append(g.Items, Group{Saga: h.Saga, Status: h.Status, Reason: h.Reason, Step: h.Step, Error: text})
		one = &g.Items[len(g.Items)-1]
	}
	one.Heads = append(one.Heads, h)
}

// alike reports whether another group differs by its step alone.
func (g *Group) alike(o Group) bool {
	return o.Step != g.Step && o.Saga == g.Saga && o.Status == g.Status && o.Reason == g.Reason && o.Error == g.Error
}

// sum says of a group what its instances say, and with what selects them for a batch: also by what narrowed the list.
func (g *Group) sum(in *ListIn) {
	slices.SortStableFunc(g.Heads, func(a, b Head) int { return At(a.Updated).Compare(At(b.Updated)) })
	g.Count, g.Oldest = len(g.Heads), g.Heads[0].Updated
	g.Sample = docs(g.Heads[:min(3, g.Count)], func(h *Head) string { return h.WorkID })
	g.Filter = Filter{"saga=" + g.Saga, "status=" + string(g.Status)}
	for _, also := range []string{With("reason=", string(g.Reason)), With("step=", g.Step), "error==" + g.Error, With("error=", in.Error), With("prefix=", in.Prefix), With("waits-for=", in.WaitsFor),
		With("external-id=", in.ExternalID), With("tag=", in.Tag), Either(in.Unconfirmed, "unconfirmed=true", ""), With("since=", in.Since), With("until=", in.Until),
		With("updated-since=", in.UpdatedSince), With("updated-until=", in.UpdatedUntil),
	} {
		if also != "" {
			g.Filter = append(g.Filter, also)
		}
	}
}

// failed is what an instance says of what failed.
type failed struct {
	texts []string // as it was recorded
	alike string   // the latest at issue, without what differs from one instance to the next
}

// have reports whether one of its texts has this, in any case; "" is in each. What begins with = is all of what it failed with last.
func (s *failed) have(text string) bool {
	if all, exactly := strings.CutPrefix(text, "="); exactly {
		return all == s.alike
	}
	text = strings.ToLower(text)
	return text == "" || slices.ContainsFunc(append([]string{s.alike}, s.texts...), func(one string) bool { return strings.Contains(strings.ToLower(one), text) })
}

// errorsOf reads what instances failed with. One that cannot be read says nothing: show says what is wrong with it.
func (d *Desk) errorsOf(ctx context.Context, k *knowledge, heads []ledger.Instance) (map[saga.ID]*failed, error) {
	all := make(map[saga.ID]*failed, len(heads))
	for some := range slices.Chunk(heads, 100) {
		chains, err := d.db.Load(ctx, docs(some, func(h *ledger.Instance) saga.ID { return h.ID }))
		if _, is := unread(err); is && len(some) > 1 {
			for i := range some {
				one, err := d.errorsOf(ctx, k, some[i:i+1])
				if err != nil {
					return nil, err
				}
				maps.Copy(all, one)
			}
			continue
		} else if err != nil && !is {
			return nil, err
		}
		for i := range some {
			all[some[i].ID] = &failed{}
		}
		for i := range chains {
			id := chains[i].Instance.ID
			if st, err := machine.Fold(id, chains[i].Records); err == nil {
				all[id] = errorOf(k, st)
			}
		}
	}
	return all, nil
}

// errorOf is what an instance says of what failed: at the step at issue, and besides.
func errorOf(k *knowledge, st *machine.State) *failed {
	s := &failed{texts: []string{st.Note}}
	for i := range st.Steps {
		s.texts = append(s.texts, st.Steps[i].Forward.Error, st.Steps[i].Undo.Error)
	}
	switch ss, dir := st.Issue(k.specOf(st.ID.Saga, st.Version)); {
	case ss != nil && dir == saga.Undo:
		s.alike = alike(st.ID.Work, ss.Undo.Error)
	case ss != nil:
		s.alike = alike(st.ID.Work, ss.Forward.Error)
	}
	return s
}

// differs are numbers, ids and times in an error. What stands behind the name of a status is no number of an instance.
var (
	differs = regexp.MustCompile(`(?i)\b(?:http|status|code|sqlstate)[ :=/]+\w+|[\w-]*\d[\w.:-]*`)
	isCode  = regexp.MustCompile(`^[A-Za-z]+[ :=/]`)
)

// alike is an error without what differs from one instance to the next.
func alike(work, text string) string {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), work, "…")
	text = differs.ReplaceAllStringFunc(text, func(s string) string { return Either(isCode.MatchString(s), s, "…") })
	if all := []rune(text); len(all) > 200 {
		text = strings.TrimSpace(string(all[:200]))
	}
	return text
}
