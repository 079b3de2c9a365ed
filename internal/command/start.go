package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// started is what start prints.
type started struct {
	desk.Begun

	Outcome string `json:"outcome"` // started, known, revised (it was known at an older revision) or stale (a newer one is known)
}

// startWord says what became of a start.
var startWord = map[string]string{
	"started": "started", "known": "known before: nothing runs a second time", "revised": "known before: it runs once more for the newer revision",
	"stale": "known at a newer revision: this one changes nothing",
}

// Retrying what may have been started is safe: the work id is the key.
const sameAgain = "give the same command again: what is started once is not started twice"

// startIn is a start, and where it is asked for.
type startIn struct {
	Saga      string        `path:"saga"`
	Work      string        `path:"work"`
	Input     string        `flag:"input" doc:"the file with the input of the saga, as JSON; - is standard input"`
	Server    string        `flag:"server" doc:"where the program's console is (default $AMENDS_SERVER)"`
	Revision  string        `flag:"revision" doc:"the version of the source object that the input is of; a newer one runs the saga once more"`
	Cause     string        `flag:"cause" doc:"what it is started for, such as a ticket; kept in the history"`
	NotBefore string        `flag:"not-before" doc:"when it begins, at the earliest: 2026-12-24T08:00:00Z"`
	Wait      desk.Duration `flag:"wait" doc:"wait so long for its end; 50s at most"`
}

var startVerb = verb[startIn, started]{
	name: "start", free: true, by: (*app).start, print: func(a *app, _ *startIn, out *started) { a.printStarted(out) },
	args: func(cmd *cobra.Command, args []string) error {
		if len(args) != 2 {
			return usage("try: "+cmd.CommandPath()+" --help", "name the saga and the work: "+cmd.CommandPath()+" SAGA WORK --input FILE")
		}
		return said("the saga or the work id", args...)
	},
}

func (a *app) start(_ *desk.Desk, ctx context.Context, in *startIn) (*started, error) {
	ask := desk.StartIn{Saga: in.Saga, WorkID: in.Work, Revision: in.Revision, Cause: in.Cause, Wait: in.Wait}
	var wrong desk.Wrong
	at, err := url.Parse(strings.TrimSuffix(cmp.Or(in.Server, a.env("AMENDS_SERVER")), "/"))
	wrong.If(err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https",
		"say where the program's console is, such as --server https://ops.example.com/amends, or set AMENDS_SERVER")
	wrong.If(a.env("AMENDS_TOKEN") == "",
		"set AMENDS_TOKEN to a token with the role starter (amends token makes one); no flag has it, because others see command lines")
	ask.NotBefore, err = time.Parse(time.RFC3339, in.NotBefore)
	wrong.If(in.NotBefore != "" && err != nil, fmt.Sprintf("--not-before %q is no time such as 2026-12-24T08:00:00Z", in.NotBefore))
	ask.Input, err = a.inputOf(in.Input)
	wrong.Err("", err)
	if len(wrong) > 0 {
		return nil, usage("try: amends start --help", wrong...)
	}
	return a.askStart(ctx, at.JoinPath("/api/v1/works").String(), &ask)
}

// inputOf is the input that a file has.
func (a *app) inputOf(file string) (json.RawMessage, error) {
	read := func() ([]byte, error) { return os.ReadFile(file) }
	if file == "-" {
		read = func() ([]byte, error) { return io.ReadAll(a.given.In) }
	}
	switch text, err := read(); {
	case file == "":
		return nil, errors.New("say --input FILE, the input of the saga as JSON; - is standard input")
	case err != nil:
		return nil, fmt.Errorf("--input cannot be read: %w", err)
	case !json.Valid(text):
		return nil, fmt.Errorf("what --input %s has is not valid JSON", file)
	default:
		return text, nil
	}
}

// askStart has a program start an instance.
func (a *app) askStart(ctx context.Context, address string, in *desk.StartIn) (*started, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute+time.Duration(in.Wait))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+a.env("AMENDS_TOKEN"))
	once := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // a token goes where it was sent
	answer, err := once.Do(r)
	if err != nil {
		return nil, &desk.Failure{Code: desk.Failed, What: "the program did not answer, and it may or may not be started", Why: err, Next: sameAgain}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	out := &started{Outcome: answer.Header.Get("Amends-Outcome")}
	if err == nil && out.Outcome != "" {
		err = json.Unmarshal(text, out)
	}
	switch {
	case err != nil:
		return nil, &desk.Failure{Code: desk.Failed, What: "the answer of the program broke off, and it may or may not be started", Why: err, Next: sameAgain}
	case out.Outcome == "":
		return nil, refusal(answer, text)
	case answer.StatusCode == http.StatusAccepted:
		return out, &desk.Failure{Code: desk.TimedOut, What: "it is started, and has not ended within " + time.Duration(in.Wait).String(), Done: true, Next: "it goes on; to wait again, " + sameAgain}
	case out.Ended != nil && out.Status != saga.Completed:
		return out, &desk.Failure{Code: desk.Conflict, What: "it is started, and is " + finding.Status(out.Status, out.Reason), Done: true, Next: "see why: " + program.Command("show", out.WorkID, " --saga "+out.Saga)}
	default:
		return out, nil
	}
}

// refusal is the error of an answer that is no start.
func refusal(answer *http.Response, text []byte) error {
	var p struct {
		Detail string    `json:"detail"`
		Code   desk.Code `json:"code"`
	}
	if json.Unmarshal(text, &p) != nil || desk.Exits[p.Code] == 0 {
		return &desk.Failure{
			Code: desk.Failed, What: fmt.Sprintf("no console of amends answers at %s: %s", answer.Request.URL.Redacted(), answer.Status),
			Next: "--server is the address of its pages, with the path below which they are",
		}
	}
	return &desk.Failure{Code: p.Code, What: p.Detail}
}

func (a *app) printStarted(out *started) {
	a.fields("work", out.WorkID, "saga", out.Saga, "outcome", cmp.Or(startWord[out.Outcome], out.Outcome), "started", finding.ISO(out.Started))
	e := out.Ended
	if e == nil {
		return
	}
	a.fields("status", finding.Status(e.Status, e.Reason), "because", e.Note)
	g := grid{header: []string{"step", "external id", "result"}}
	for _, name := range slices.Sorted(maps.Keys(e.Results)) {
		g.add(name, e.Results[name].ExternalID, string(e.Results[name].Output))
	}
	if len(g.rows) > 0 {
		fmt.Fprintln(a.out)
		a.print(&g)
	}
}
