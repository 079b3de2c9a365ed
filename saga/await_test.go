package saga_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What is wrong with a wait for an answer is said when it is defined, everything at once.
func TestAwaitFaults(t *testing.T) {
	t.Parallel()
	act := func(context.Context, saga.Call[string]) (string, error) { return "", nil }
	read := func(saga.Call[string], saga.Message) (string, error) { return "", nil }
	find := func(context.Context, saga.Call[string]) (saga.Finding[string], error) {
		return saga.NotFound[string](), nil
	}
	key := func(c saga.Call[string]) string { return c.Work }
	submit := saga.Do("submit", act).Idempotent().NoUndo("a test")
	well := func() *saga.Answer[string, string] {
		return saga.Await("answer", read).Callback("submit").Within(time.Hour, saga.Compensate)
	}
	for want, steps := range map[string][]saga.Step[string]{
		"":                                   {submit, well().On("done", key).EachRun().Find(find).Poll(time.Minute)},
		"it has no function that reads":      {submit, saga.Await[string, string]("answer", nil).Callback("submit").Within(time.Hour, saga.Compensate)},
		"its Within lasts 0s":                {submit, saga.Await("answer", read).Callback("submit")},
		`Within is followed by "later"`:      {submit, saga.Await("answer", read).Callback("submit").Within(time.Hour, "later")},
		"nothing can answer it":              {submit, saga.Await("answer", read).Within(time.Hour, saga.AskPerson)},
		"Poll needs a Find":                  {submit, well().Poll(time.Minute)},
		"Poll needs the time":                {submit, well().Find(find).Poll(0)},
		"Find needs a function":              {submit, well().Find(nil)},
		"On needs a function":                {submit, well().On("done", nil).Once()},
		"becomes of its answer in a later":   {submit, well().On("done", key)},
		"are said of messages":               {submit, well().Once()},
		`the message "a b" that it`:          {submit, well().On("a b", key).Once()},
		`waits for the message "done" twice`: {submit, well().On("done", key).On("done", key).Once()},
		`no action before it has that name`:  {well(), submit},
		`so does that of an Await before it`: {submit, well(), saga.Await("other", read).Callback("submit").Within(time.Hour, saga.Compensate)},
	} {
		_, err := saga.Define("s", 1, steps...)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What a user's functions do wrong is an error, and takes no process down.
func TestAwaitFunctionsThatPanic(t *testing.T) {
	t.Parallel()
	submit := func(_ context.Context, c saga.Call[string]) (string, error) { return c.CallbackToken(), nil }
	d, err := saga.Define("s", 1, saga.Do("submit", submit).Idempotent().NoUndo("a test"),
		saga.Await("answer", func(c saga.Call[string], m saga.Message) (string, error) {
			if string(m.Body) == "no" {
				return "", errors.New("not ours")
			}
			return c.ExternalID("submit") + string(m.Body), nil
		}).On("done", func(c saga.Call[string]) string { return c.ExternalID("submit") }).EachRun().Within(time.Hour, saga.Compensate))
	if err != nil {
		t.Fatal(err)
	}
	inv := program.Invocation{Work: "w", Step: "answer", Input: []byte(`""`)}
	if _, err := d.Keys(&inv); err == nil || !strings.Contains(err.Error(), "submit") {
		t.Errorf("a key of what is not done: %v", err)
	}
	if _, err := d.Read(&inv, program.Message{}); err == nil || !strings.Contains(err.Error(), "submit") {
		t.Errorf("an answer to what is not done: %v", err)
	}
	inv.Results = map[string]program.Result{"submit": {ExternalID: "job_1"}}
	if keys, err := d.Keys(&inv); err != nil || len(keys) != 1 || keys[0] != (program.MessageKey{Name: "done", Key: "job_1"}) {
		t.Errorf("%+v, %v", keys, err)
	}
	if f, err := d.Read(&inv, program.Message{Body: []byte("!")}); err != nil || f.ExternalID != "job_1!" || string(f.Output) != `"job_1!"` {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := d.Read(&inv, program.Message{Body: []byte("no")}); err == nil || err.Error() != "not ours" {
		t.Errorf("declined with %v", err)
	}
	if o := d.Act(t.Context(), &program.Invocation{Work: "w", Step: "submit", Input: []byte(`""`)}); o.Class != saga.Fault || !strings.Contains(o.Error, "CallbackToken") && !strings.Contains(o.Error, "callback token") {
		t.Errorf("a token that no Await asks for: %+v", o)
	}
}
