package console

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/answers"
	"github.com/amends-dev/amends/saga"
)

// What is read and said answers as the document says.
func TestAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start("mail", "order:1", letter{Outcome: "the line went dead"}, saga.Review)
	w.start("mail", "order:2", letter{Outcome: "the line went dead"}, saga.Review)
	w.start("pay", "bill:1", letter{To: "Otto"}, saga.Waiting)
	x := w.as("anna", Admin)
	status, doc := x.get("/api/v1/openapi.json")
	if status != http.StatusOK {
		t.Fatal(status)
	}
	book := answers.Open(t, []byte(doc))
	ask := func(method, path, filled, body string) {
		t.Helper()
		header := map[string]string{"Authorization": "Bearer " + x.token}
		if body != "" {
			header["Content-Type"] = "application/json"
		}
		status, text := x.ask(method, "/api/v1"+filled, body, header)
		book.Check(method, "/api/v1"+path, status, text)
	}
	for _, path := range []string{
		"/status", "/version", "/check", "/report", "/works", "/approvals", "/duplicates", "/acts", "/destinations", "/sagas", "/everything/acts", "/inbox", "/inbox/objects", "/inbox/counts",
		"/jobs", "/jobs/runs", "/drift", "/works/nothing/here",
	} {
		is := path
		if strings.HasPrefix(path, "/works/") {
			is = "/works/{saga}/{work}"
		}
		ask("GET", is, path, "")
	}
	ask("GET", "/schedule/{text}", "/schedule/30%202%20*%20*%20*?zone=UTC", "")
	const one, two, bill = "/works/mail/order:1", "/works/mail/order:2", "/works/pay/bill:1"
	ask("GET", "/works/{saga}/{work}", one, "")
	ask("GET", "/works/{saga}/{work}/history", one+"/history", "")
	ask("GET", "/works/{saga}/{work}/bodies", one+"/bodies", "")
	ask("GET", "/works/{saga}/{work}/approval", bill+"/approval", "")
	var shown struct{ Digest string }
	_, text := x.get("/api/v1" + bill + "/approval")
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		t.Fatal(err)
	}
	const why = `"reason":"a test"`
	ask("POST", "/works/{saga}/{work}/resolve", one+"/resolve", `{`+why+`,"step":"send","happened":"id","wait":"20s"}`)
	ask("POST", "/works/{saga}/{work}/skip", two+"/skip", `{`+why+`,"dry-run":true}`)
	ask("POST", "/works/{saga}/{work}/skip", two+"/skip", `{`+why+`,"wait":"20s"}`)
	ask("POST", "/works/{saga}/{work}/retry", two+"/retry", `{`+why+`}`) // refused: it has ended
	ask("POST", "/works/{saga}/{work}/rerun", two+"/rerun", `{`+why+`,"dry-run":true}`)
	ask("POST", "/works/{saga}/{work}/pause", bill+"/pause", `{`+why+`,"wait":"20s"}`)
	ask("POST", "/works/{saga}/{work}/resume", bill+"/resume", `{`+why+`,"wait":"20s"}`)
	ask("POST", "/works/{saga}/{work}/approve", bill+"/approve", `{`+why+`,"step":"release","shown":"`+shown.Digest+`","wait":"20s"}`)
	ask("POST", "/works/{saga}/{work}/cancel", bill+"/cancel", `{`+why+`}`)
	ask("POST", "/destinations/{name}/pause", "/destinations/mail%2Fsend/pause", `{`+why+`}`)
	ask("POST", "/destinations/{name}/resume", "/destinations/mail%2Fsend/resume", `{`+why+`}`)
	ask("POST", "/destinations/{name}/probe", "/destinations/mail%2Fsend/probe", `{`+why+`}`)
	ask("POST", "/everything/pause", "/everything/pause", `{`+why+`}`)
	ask("GET", "/everything/acts", "/everything/acts", "")
	ask("POST", "/everything/resume", "/everything/resume", `{`+why+`}`)
	ask("POST", "/messages/{name}/{key}", "/messages/render.done/10492", `{"id":"evt_7","body":{"film":9}}`)
	ask("POST", "/catch-up", "/catch-up", "")
	ask("GET", "/acts", "/acts", "")
	if len(book.Seen) < 25 {
		t.Errorf("only %d operations answered as they do when all is well: %v", len(book.Seen), book.Seen)
	}
}

// A start that comes again gets the status and body of the first; another input under the same work
// id is a conflict, and starts nothing.
func TestStartOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	x := w.as("svc", Operator)
	start := func(key, body string) (int, string, http.Header) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+"/api/v1/works", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+x.token)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		answer, err := x.c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		var text bytes.Buffer
		_, _ = text.ReadFrom(answer.Body)
		return answer.StatusCode, text.String(), answer.Header
	}
	const body = `{"saga":"mail","input":{"To":"Otto"}}`
	status, first, _ := start("order:1", body)
	if status != http.StatusCreated || !strings.Contains(first, `"workId":"order:1"`) {
		t.Fatalf("a start: %d %s", status, first)
	}
	w.until("mail", "order:1", saga.Completed)
	status, second, header := start("", `{"saga":"mail","workId":"order:1","input":{"To":"Otto"}}`)
	if status != http.StatusCreated || second != first || header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the same again: %d %s %v\nfirst it was %s", status, second, header, first)
	}
	for _, c := range []struct {
		key, body string
		want      int
	}{
		{"order:1", `{"saga":"mail","input":{"To":"Eve"}}`, 409},
		{"order:2", `{"saga":"mail","workId":"order:1","input":{}}`, 400},
		{"", body, 400},
		{"order:3", `{"saga":"nothing","input":{}}`, 404},
		{"order:3", `{"saga":"mail","input":{},"actor":"anna"}`, 400},
		{"order:3", `{"saga":"mail"`, 400},
		{strings.Repeat("x", 300), body, 400},
	} {
		if status, text, _ := start(c.key, c.body); status != c.want {
			t.Errorf("%.40s %s: %d %s, want %d", c.key, c.body, status, text, c.want)
		}
	}
	if s, err := w.c.Show(t.Context(), saga.ID{Saga: "mail", Work: "order:1"}); err != nil || s.Steps["send"].Attempts != 1 {
		t.Errorf("%v: it was sent %d times", err, s.Steps["send"].Attempts)
	}
	if status, _ := w.as("rita", Reader).post("/api/v1/works", body); status != http.StatusForbidden {
		t.Errorf("a reader starts: %d", status)
	}
	if status, _ := x.ask("POST", "/api/v1/callbacks/nonsense", "{}", nil); status != http.StatusNotFound {
		t.Errorf("a callback that there is not: %d", status)
	}
}
