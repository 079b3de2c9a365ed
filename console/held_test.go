package console

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/saga"
)

// holds leaves withdrawals of a source that wait for a person.
func (w *world) holds(source string, from, to int) {
	w.t.Helper()
	for n := from; n <= to; n++ {
		o := intake.Object{Source: source, Type: "order", ID: strconv.Itoa(n)}
		err := w.db.Update(w.t.Context(), o, func(_ time.Time, e *intake.Entry) error {
			e.Accepted, e.Held = 1, 1
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// The first page shows withdrawals that are held, and who may decides by one act for each source.
func TestHeldWithdrawals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	reader, operator := w.as("rita", Reader), w.as("olaf", Operator)
	w.holds("shop", 1, 3)
	w.holds("a/b?c", 1, 2)
	_, text := reader.get("/")
	has(t, text, "withdrawals of shop that are held: 3", "withdrawals of a/b?c that are held: 2")
	if strings.Contains(text, "everything moves") || forms.MatchString(text) {
		t.Errorf("a reader is shown\n%s", text)
	}
	_, page := operator.get("/")
	_, shop, _ := strings.Cut(page, "<bdi>shop</bdi>")
	has(t, operator.send(page, "Drop them: nothing is undone", map[string]string{"reason": "mended"}), "said good", "withdrawals of shop that are held: 3")
	has(t, operator.send(shop, "Release them: all of it is undone", map[string]string{"reason": "it closes"}), "said good", "everything moves")
	has(t, operator.send(page, "Release them: all of it is undone", map[string]string{"reason": "late"}), "Nothing was held any more")
	for o, let := range map[intake.Object]int64{{Source: "shop", Type: "order", ID: "2"}: 1, {Source: "a/b?c", Type: "order", ID: "2"}: 0} {
		if e, err := w.db.Entry(t.Context(), o); err != nil || e.Held != 0 || e.Let != let || e.Delivered != 1-let {
			t.Errorf("%s is %+v, %v", o, e, err)
		}
	}
	if w.deeds() != 2 {
		t.Errorf("%d deeds are on record", w.deeds())
	}
}

// Whatever status finds stands on the first page, each with what to do: here a shop whose clock is ahead.
func TestFindingsOnTheFirstPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	reader := w.as("rita", Reader)
	err := w.db.Update(t.Context(), intake.Object{Source: "shop", Type: "order", ID: "1"}, func(now time.Time, e *intake.Entry) error {
		e.FetchRequested, e.Due, e.LastError = 1, now.Add(time.Hour), intake.NotYet+now.Add(2*time.Hour).Format(time.RFC3339)+", which lies ahead"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, text := reader.get("/")
	has(t, text, "source shop: 1 object changed up to ", "ahead of our clock", "compare the clocks", "By themselves:")
	if strings.Contains(text, "everything moves") {
		t.Errorf("it says that everything moves:\n%s", text)
	}
}

// Reviews that are alike are decided together, each after it was shown: what has moved on since is left, and named.
func TestSeveralAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	reader, operator := w.as("rita", Reader), w.as("olaf", Operator)
	for _, id := range []string{"order:1", "order:2", "order:3", "order:4"} {
		w.start("mail", id, letter{Outcome: "the line went dead"}, saga.Review)
	}
	_, text := reader.get("/")
	has(t, text, "4 of <bdi>mail</bdi>, step <bdi>send</bdi>: in-doubt", "3 of 4 are shown")
	const group = "/group?saga=mail&step=send&reason=in-doubt"
	if _, text := reader.get(group); forms.MatchString(text) {
		t.Error("a reader is offered to decide")
	}
	_, page := operator.get(group)
	has(t, page, "order:1", "order:4", "the line went dead")
	has(t, operator.press(address("mail", "order:2"), "It happened", map[string]string{"happened": "letter_9", "reason": "found"}), "said good")
	unticked := strings.Replace(page, `name="one"`, `name="none"`, 1) // the first is not chosen
	const button = "It happened, without an id"
	has(t, operator.send(unticked, button, map[string]string{"reason": "all lie in the outbox"}), "2 of 3 are done", "order:2: ", "what you saw")
	for id, status := range map[string]saga.Status{"order:1": saga.Review, "order:3": saga.Completed, "order:4": saga.Completed} {
		w.until("mail", id, status)
	}
	has(t, operator.send(strings.ReplaceAll(page, `name="one"`, `name="none"`), button, map[string]string{"reason": "none is chosen"}), "said bad", "none is ticked")
	if strings.Contains(page, "<button>It happened</button>") || strings.Contains(page, "<button>It did not happen</button>") {
		t.Error("what says something of one instance, or may do it twice, is said of several")
	}
}
