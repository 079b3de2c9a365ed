package storetest

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var controlCases = []testCase{
	{name: "set and read", run: controlSet},
	{name: "compared", run: controlCompared, breaks: broken{"control-compared": func(s Store) Store { return controlOverwriter{s} }}},
	{name: "a live session", run: controlLive, breaks: broken{"control-lease": func(s Store) Store { return haunted{s} }}},
	{name: "acts", run: controlActs, breaks: broken{"act-kept": func(s Store) Store { return shortlived{s} }}},
	{name: "deeds", run: controlDeeds, breaks: broken{"deed-kept": func(s Store) Store { return discreet{s} }, "deed-by-hand": func(s Store) Store { return accuser{s} }}},
	{name: "the newest version is told", run: controlTold, breaks: broken{"control-told": func(s Store) Store { return mute{s} }}},
	{name: "repeated", run: controlRepeated, breaks: broken{"set-known": func(s Store) Store { return renamer{s} }}},
	{name: "requests", run: controlRequests, breaks: broken{"request-once": func(s Store) Store { return doubler{s} }}},
	{name: "requests are kept for a day", run: controlRequestsKept, needs: hasClock},
	{name: "bad values", run: controlBad},
	{name: "sixteen at once", run: controlRace, needs: tellsAll},
	{name: "a death at once", run: controlDeath},
}

// nonces are drawn in order: what counts is that none comes twice.
var nonces atomic.Int64

// control is a control as a process would set it first.
func control(kind ledger.ControlKind, name, body string) ledger.Control {
	c := ledger.Control{Kind: kind, Name: name, Nonce: nonces.Add(1)}
	if body != "" {
		c.Body = json.RawMessage(body)
	}
	return c
}

// after makes c a set that was decided on was.
func after(was, c ledger.Control) ledger.Control {
	c.Version = was.Version
	return c
}

// by makes c what a person does.
func by(c ledger.Control, actor, reason string) ledger.Control {
	c.Actor, c.Reason = actor, reason
	return c
}

func (b *bench) set(t machine.Token, c ledger.Control) ledger.Control {
	b.Helper()
	is, err := b.SetControl(b.Context(), t, c)
	if err != nil {
		b.Fatalf("set %s %q: %v", c.Kind, c.Name, err)
	}
	return is
}

func (b *bench) controls() ([]ledger.Control, int64) {
	b.Helper()
	all, newest, err := b.Controls(b.Context())
	if err != nil {
		b.Fatalf("controls: %v", err)
	}
	return all, newest
}

func (b *bench) acts(c ledger.Control, limit int) []ledger.Control {
	b.Helper()
	acts, err := b.Acts(b.Context(), c.Kind, c.Name, limit)
	if err != nil {
		b.Fatalf("acts of %s %q: %v", c.Kind, c.Name, err)
	}
	return acts
}

func sameControl(a, c ledger.Control) bool {
	return a.Kind == c.Kind && a.Name == c.Name && a.Version == c.Version && string(a.Body) == string(c.Body) &&
		(a.Body == nil) == (c.Body == nil) && a.Actor == c.Actor && a.Reason == c.Reason && a.Session == c.Session &&
		a.Nonce == c.Nonce && a.At.Equal(c.At)
}

func (b *bench) wantControls(when string, want ...ledger.Control) {
	b.Helper()
	if got, _ := b.controls(); !slices.EqualFunc(got, want, sameControl) {
		b.Errorf("%s the controls are\n\t%+v, want\n\t%+v", when, got, want)
	}
}

// SetControl "returns it as it is stored", and Controls "every control there is, by kind and name",
// byte by byte. One that is over stays.
func controlSet(b *bench) {
	t := b.session()
	b.wantControls("at first")
	before := b.clock()
	pause := b.set(0, by(control(ledger.ControlPause, "saga:ö \"x\"", "{ \"a\":  1 }"), "ann", "it's\nlate"))
	state := b.set(t, control(ledger.ControlDestination, strings.Repeat("x", ledger.MaxText), `"`+strings.Repeat("y", 100_000)+`"`))
	other := b.set(t, control(ledger.ControlDestination, "saga:ö \"x\"", `null`))
	if pause.Version <= 0 || state.Version <= pause.Version || other.Version <= state.Version {
		b.Errorf("versions %d, %d, %d: they do not ascend", pause.Version, state.Version, other.Version)
	}
	if pause.At.Before(before) || pause.At.After(b.clock()) || pause.Session != 0 || state.Session != t ||
		string(pause.Body) != "{ \"a\":  1 }" || pause.Actor != "ann" || pause.Reason != "it's\nlate" || pause.Nonce == 0 {
		b.Errorf("set were %+v and %+v", pause, state)
	}
	b.wantControls("set", other, state, pause)
	over := b.set(t, after(other, control(other.Kind, other.Name, "")))
	if over.Body != nil || over.Version <= other.Version {
		b.Errorf("what is over is %+v", over)
	}
	b.wantControls("over", over, state, pause)
}

// It is stored "if the control still has version c.Version, 0 if there is none yet", else it is
// changed, and nothing is.
func controlCompared(b *bench) {
	t := b.session()
	first := b.set(t, control(ledger.ControlPause, "a", `1`))
	other := b.set(t, control(ledger.ControlShare, "a", `1`))
	second := b.set(b.session(), after(first, control(first.Kind, first.Name, `2`)))
	over := b.set(t, after(other, control(other.Kind, other.Name, "")))
	never := control(ledger.ControlPause, "never", `1`)
	never.Version = first.Version
	for what, c := range map[string]ledger.Control{
		"as if there were none":         control(first.Kind, first.Name, `3`),
		"on one that was replaced":      after(first, control(first.Kind, first.Name, `3`)),
		"on another's version":          after(over, control(first.Kind, first.Name, `3`)),
		"one that was never set":        never,
		"one that is over, as if never": control(over.Kind, over.Name, `3`),
	} {
		for _, c := range []ledger.Control{c, by(c, "ann", "why")} {
			is, err := b.SetControl(b.Context(), t, c)
			b.wantError(what, err, ledger.ErrChanged)
			if err != nil && !sameControl(is, ledger.Control{}) {
				b.Errorf("%s: an error and %+v", what, is)
			}
		}
	}
	b.wantControls("after sets that came too late", second, over)
	if n := len(b.acts(first, 0)) + len(b.acts(never, 0)); n != 0 {
		b.Errorf("%d acts of sets that came too late", n)
	}
}

// "T is the session that sets it, which must be live at the moment it is stored." A person has
// none.
func controlLive(b *bench) {
	dead, expired, t := b.session(), b.session(), b.session()
	is := b.set(dead, control(ledger.ControlDestination, books, `1`))
	b.bury(dead)
	b.expire(expired)
	for _, s := range []machine.Token{dead, expired, t + 1} {
		for _, c := range []ledger.Control{
			control(ledger.ControlDestination, mail, `1`), after(is, control(is.Kind, is.Name, `2`)),
			by(after(is, control(is.Kind, is.Name, `2`)), "ann", "why"),
		} {
			_, err := b.SetControl(b.Context(), s, c)
			b.wantError("set by a session that is not live", err, ledger.ErrSessionDead)
		}
	}
	b.wantControls("after sets of dead sessions", is)
	is = b.set(0, by(after(is, control(is.Kind, is.Name, `3`)), "ann", ""))
	b.set(t, after(is, control(is.Kind, is.Name, `4`)))
}

// Acts returns "what was set with an Actor, of one control, the newest first, at most limit of
// them".
func controlActs(b *bench) {
	t := b.session()
	first := b.set(0, by(control(ledger.ControlPause, "all", `{"until":"noon"}`), "ann", "the books are closed"))
	state := b.set(t, after(first, control(first.Kind, first.Name, `{}`)))
	second := b.set(t, by(after(state, control(first.Kind, first.Name, "")), "bob", ""))
	b.set(0, by(control(ledger.ControlPause, "saga:x", `1`), "ann", "another"))
	b.set(0, by(control(ledger.ControlShare, "all", `1`), "ann", "another"))
	if got := b.acts(first, 0); !slices.EqualFunc(got, []ledger.Control{second, first}, sameControl) {
		b.Errorf("the acts are %+v, want %+v and %+v", got, second, first)
	}
	if got := b.acts(first, 1); !slices.EqualFunc(got, []ledger.Control{second}, sameControl) {
		b.Errorf("the latest act is %+v, want %+v", got, second)
	}
	for _, name := range []string{"none", "", "a\x00", "\xff"} {
		if got := b.acts(ledger.Control{Kind: ledger.ControlPause, Name: name}, 5); len(got) != 0 {
			b.Errorf("acts of %q: %+v", name, got)
		}
	}
	last := second
	for range 101 {
		last = b.set(0, by(after(last, control(first.Kind, first.Name, `1`)), "ann", ""))
	}
	if got := b.acts(first, 0); len(got) != 100 || !sameControl(got[0], last) {
		b.Errorf("%d acts without a limit, want the 100 newest", len(got))
	}
	if got := b.acts(first, 1000); len(got) != 103 || !sameControl(got[102], first) {
		b.Errorf("%d acts, want all 103", len(got))
	}
}

// Deeds returns what people did, the newest first: what they said to an instance, set, looked at and
// asked for. What a program says is none.
func controlDeeds(b *bench) {
	id := b.start(b.session(), "deeds", started(), release).id
	post := func(s machine.Signal) {
		b.Helper()
		if err := b.Post(b.Context(), id, s); err != nil {
			b.Fatal(err)
		}
	}
	post(machine.Signal{Kind: machine.SignalPause, Key: "pause:1", Actor: "ann", Reason: "wait", ByHand: true})
	post(machine.Signal{Kind: machine.SignalRevise, Key: "revise:2", Actor: "webhook"})
	decided := saga.Resolution{Step: "mail", Direction: saga.Forward, Attempt: 2, Happened: true, ExternalID: "mail_7"}
	post(machine.Signal{Kind: machine.SignalResolve, Key: "resolve:1", Actor: "dan", ByHand: true, Resolution: decided})
	post(machine.Signal{Kind: machine.SignalWake, Key: "wake:1", Actor: "eve", ByHand: true, Resolution: saga.Resolution{Step: "mail"}})
	b.set(0, by(control(ledger.ControlPause, "all", `{}`), "bob", "stop"))
	if err := b.Looked(b.Context(), "bodies of deeds", saga.Actor{Name: "cid", Reason: "a complaint"}); err != nil {
		b.Fatal(err)
	}
	if err := b.Looked(b.Context(), "bodies of deeds", saga.Actor{Name: "cid"}); err != nil {
		b.Fatal(err)
	}
	list := func(before time.Time, limit int) (said []string, all []ledger.Deed) {
		b.Helper()
		all, err := b.Deeds(b.Context(), before, limit)
		if err != nil {
			b.Fatal(err)
		}
		for i, d := range all {
			if i > 0 && d.At.After(all[i-1].At) {
				b.Errorf("%+v stands behind %+v: want the newest first", d, all[i-1])
			}
			said = append(said, strings.Join([]string{d.Kind, d.ID.Work, d.Name, d.Actor, d.Reason}, " "))
			if d.Kind == string(machine.SignalResolve) != reflect.DeepEqual(d.Resolution, decided) {
				b.Errorf("%s said %+v, want %+v", d.Actor, d.Resolution, decided)
			}
		}
		slices.Sort(said) // what falls into one moment has no order
		return said, all
	}
	want := []string{"look  bodies of deeds cid ", "look  bodies of deeds cid a complaint", "pause  all bob stop", "pause " + id.Work + "  ann wait", "resolve " + id.Work + "  dan ", "wake " + id.Work + "  eve "}
	said, all := list(time.Time{}, 0)
	if !slices.Equal(said, want) {
		b.Errorf("people did %q, want %q", said, want)
	}
	if said, _ := list(time.Time{}, 2); len(said) != 2 {
		b.Errorf("%d deeds, want the 2 newest", len(said))
	}
	if said, _ := list(all[0].At, 0); slices.Contains(said, strings.Join([]string{all[0].Kind, all[0].ID.Work, all[0].Name, all[0].Actor, all[0].Reason}, " ")) {
		b.Errorf("before %s there is %q", all[0].At, said)
	}
	for _, what := range []string{"", "a\x00"} {
		if err := b.Looked(b.Context(), what, saga.Actor{Name: "cid"}); !errors.Is(err, ledger.ErrInvalid) {
			b.Errorf("a look at %q: %v", what, err)
		}
	}
}

// What was asked under a key is kept with the nonce of who asked first, and what it was answered with, until it is freed.
func controlRequests(b *bench) {
	first := ledger.Request{Key: "k1", Nonce: nonces.Add(1), Asks: "cancel"}
	ask := func(r ledger.Request) ledger.Request {
		b.Helper()
		kept, err := b.Request(b.Context(), r)
		if err != nil {
			b.Fatal(err)
		}
		return kept
	}
	again := ledger.Request{Key: "k1", Nonce: nonces.Add(1), Asks: "resume"}
	for range 2 { // the same call again, when its answer was lost
		if kept := ask(first); kept.Nonce != first.Nonce || kept.Asks != "cancel" || kept.At.IsZero() || kept.Answer != nil {
			b.Errorf("the first is %+v", kept)
		}
	}
	if kept := ask(again); kept.Nonce != first.Nonce || kept.Asks != "cancel" || kept.Answer != nil {
		b.Errorf("behind it there is %+v", kept)
	}
	answer := func(r ledger.Request, text []byte) {
		b.Helper()
		if err := b.Answer(b.Context(), r.Key, r.Nonce, text); err != nil {
			b.Fatal(err)
		}
	}
	answer(again, []byte(`"mine"`)) // it is not its own
	answer(ledger.Request{Key: "nothing", Nonce: 1}, []byte(`1`))
	if kept := ask(again); kept.Answer != nil {
		b.Errorf("another one answered it: %s", kept.Answer)
	}
	answer(first, []byte(`{"é": 1}`))
	if kept := ask(again); string(kept.Answer) != `{"é": 1}` {
		b.Errorf("its answer is %s", kept.Answer)
	}
	answer(first, nil)
	if kept := ask(again); kept.Nonce != again.Nonce {
		b.Errorf("a key that was freed has %+v", kept)
	}
}

// A request is kept for [ledger.RequestsKept], and then its key is free.
func controlRequestsKept(b *bench) {
	day := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i, at := range []time.Duration{0, ledger.RequestsKept - time.Second, ledger.RequestsKept + time.Second} {
		b.setClock(day.Add(at))
		r, err := b.Request(b.Context(), ledger.Request{Key: "kept", Nonce: int64(i + 1), Asks: "a"})
		if want := []int64{1, 1, 3}[i]; err != nil || r.Nonce != want {
			b.Errorf("after %s the request is that of %d, want %d (%v)", at, r.Nonce, want, err)
		}
	}
}

// A process learns of the newest version from an open session, a renewal and a claim, and reads no
// less than it was told.
func controlTold(b *bench) {
	t := b.session()
	told := func(want int64) {
		b.Helper()
		opened, err := b.OpenSession(b.Context(), time.Hour, "suite", nil)
		if err != nil {
			b.Fatal(err)
		}
		renewed, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Hour})
		if err != nil {
			b.Fatal(err)
		}
		claimed, err := b.Claim(b.Context(), t, ledger.Claim{Limit: 1, Known: known})
		if err != nil {
			b.Fatal(err)
		}
		idle, err := b.Claim(b.Context(), t, ledger.Claim{})
		if err != nil {
			b.Fatal(err)
		}
		_, read := b.controls()
		got := []int64{opened.Controls, renewed.Controls, claimed.Controls, idle.Controls, read}
		if slices.ContainsFunc(got, func(n int64) bool { return n != want }) {
			b.Errorf("opened, renewed, claimed, claimed with no room and read: told of versions %v, want %d", got, want)
		}
	}
	told(0)
	is := b.set(t, control(ledger.ControlDestination, books, `1`))
	told(is.Version)
	if _, err := b.SetControl(b.Context(), t, control(is.Kind, is.Name, `1`)); !errors.Is(err, ledger.ErrChanged) {
		b.Errorf("set as if there were none: %v", err)
	}
	told(is.Version) // what was refused is no news
	b.set(t, control(ledger.ControlDestination, mail, `1`))
	is = b.set(0, by(after(is, control(is.Kind, is.Name, "")), "ann", ""))
	b.start(b.session(), "w", started(), release)
	told(is.Version)
	dying := b.session()
	b.start(dying, "orphan", started(), hold)
	b.bury(dying)
	told(is.Version)
}

// "A control that has c.Nonce and session t, and is newer than c.Version, is what an earlier call
// stored": the answer that was lost. One act is kept of it.
func controlRepeated(b *bench) {
	t := b.session()
	is := b.set(t, control(ledger.ControlDestination, books, `1`))
	for what, c := range map[string]ledger.Control{
		"a change": after(is, control(is.Kind, is.Name, `2`)), "the first": control(is.Kind, "first", `2`),
		"an act": by(control(ledger.ControlPause, "all", `1`), "ann", "why"),
	} {
		l := ledgertest.Faulty(b.Store, ledgertest.LoseAnswer(1, ledgertest.SetControl), ledgertest.FailBefore(2, ledgertest.SetControl))
		for range 2 {
			_, err := l.SetControl(b.Context(), t, c)
			b.wantError(what, err, ledgertest.ErrInjected)
		}
		again, err := l.SetControl(b.Context(), t, c)
		if err != nil {
			b.Fatalf("%s again: %v", what, err)
		}
		all, newest := b.controls()
		at := slices.IndexFunc(all, func(a ledger.Control) bool { return a.Kind == c.Kind && a.Name == c.Name })
		if again.Version != newest || again.Version <= c.Version || at < 0 || !sameControl(all[at], again) {
			b.Errorf("%s again: %+v of %+v, want it stored once", what, again, all)
		}
	}
	if acts := b.acts(ledger.Control{Kind: ledger.ControlPause, Name: "all"}, 0); len(acts) != 1 {
		b.Errorf("one act was done, %d are told", len(acts))
	}
	mine := control(ledger.ControlShare, "mine", `1`)
	stored := b.set(t, mine)
	_, err := b.SetControl(b.Context(), b.session(), mine)
	b.wantError("the same by another session", err, ledger.ErrChanged)
	same := mine
	same.Nonce = control("", "", "").Nonce
	_, err = b.SetControl(b.Context(), t, same)
	b.wantError("the same with another nonce", err, ledger.ErrChanged)
	b.bury(t)
	if again := b.set(t, mine); !sameControl(again, stored) {
		b.Errorf("again, when the session has died: %+v, want %+v", again, stored)
	}
	b.set(0, by(after(stored, control(stored.Kind, stored.Name, `2`)), "ann", ""))
	other := b.session()
	_, err = b.SetControl(b.Context(), other, mine)
	b.wantError("again, when others have set it since", err, ledger.ErrChanged)
}

// What cannot be stored is refused before anything is sent, the same on every engine.
func controlBad(b *bench) {
	t := b.session()
	good := control(ledger.ControlDestination, books, `1`)
	for what, change := range map[string]func(c *ledger.Control){
		"no kind":            func(c *ledger.Control) { c.Kind = "" },
		"an unknown kind":    func(c *ledger.Control) { c.Kind = "Pause" },
		"no name":            func(c *ledger.Control) { c.Name = "" },
		"a long name":        func(c *ledger.Control) { c.Name = strings.Repeat("x", ledger.MaxText+1) },
		"a name with a NUL":  func(c *ledger.Control) { c.Name = "a\x00" },
		"a name in no UTF-8": func(c *ledger.Control) { c.Name = "\xff" },
		"a body of no JSON":  func(c *ledger.Control) { c.Body = json.RawMessage(`{`) },
		"a body in no UTF-8": func(c *ledger.Control) { c.Body = json.RawMessage("\"\xff\"") },
		"an actor's NUL":     func(c *ledger.Control) { c.Actor = "\x00" },
		"a reason's NUL":     func(c *ledger.Control) { c.Actor, c.Reason = "ann", "\x00" },
		"a reason alone":     func(c *ledger.Control) { c.Reason = "why" },
		"no nonce":           func(c *ledger.Control) { c.Nonce = 0 },
		"a negative version": func(c *ledger.Control) { c.Version = -1 },
	} {
		c := good
		change(&c)
		_, err := b.SetControl(b.Context(), t, c)
		b.wantError(what, err, ledger.ErrInvalid)
	}
	_, err := b.SetControl(b.Context(), 0, good)
	b.wantError("a person without a name", err, ledger.ErrInvalid)
	b.wantControls("after bad values")
}
