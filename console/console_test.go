package console

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/amends-dev/amends/internal/command"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/retention"
	"github.com/amends-dev/amends/saga"
)

// may is who may do what, written down a second time: a route that is not in it fails, and so does
// one that lets in others.
var may = map[string]string{
	Reader: `GET /status, GET /stats, GET /version, GET /check, GET /report, GET /works, GET /works/{saga}/{work}, GET /works/{saga}/{work}/history,
		GET /works/{saga}/{work}/approval, GET /approvals, GET /duplicates, GET /groups, GET /alerts, GET /acts, GET /batches/{batch}, GET /destinations, GET /destinations/{name}/acts, GET /sagas, GET /sagas/{saga}/acts,
		GET /everything/acts, GET /inbox, GET /inbox/objects, GET /inbox/counts, GET /inbox/deliveries/{number}, GET /jobs, GET /jobs/runs,
		GET /jobs/{job}/runs, GET /jobs/{job}/decisions, GET /plans/{plan}, GET /drift, GET /schedule/{text}`,
	Approver: `POST /works/{saga}/{work}/approve, POST /works/{saga}/{work}/reject`,
	Starter:  `POST /works`,
	Operator: `GET /works/{saga}/{work}/bodies, GET /inbox/deliveries/{number}/bodies, POST /works/{saga}/{work}/retry, POST /works/{saga}/{work}/resolve,
		POST /works/{saga}/{work}/skip, POST /works/{saga}/{work}/pause, POST /works/{saga}/{work}/resume, POST /works/{saga}/{work}/wake,
		POST /works/{saga}/{work}/complete, POST /works/{saga}/{work}/fail, POST /works/{saga}/{work}/extend, POST /works/{saga}/{work}/cancel,
		POST /works/{saga}/{work}/undo, POST /works/{saga}/{work}/rerun, POST /batches, POST /alerts/test, POST /messages/{name}/{key}, POST /destinations/{name}/probe, POST /destinations/{name}/pause,
		POST /destinations/{name}/resume, POST /sagas/{saga}/pause, POST /sagas/{saga}/resume, POST /inbox/deliveries/{number}/replay, POST /inbox/replay,
		POST /inbox/sources/{source}/release, POST /inbox/sources/{source}/drop,
		POST /jobs/{job}/run, POST /jobs/{job}/backfill, POST /jobs/{job}/plan, POST /jobs/{job}/plans/{plan}/apply, POST /jobs/{job}/approve, POST /jobs/{job}/findings/{verdict}, POST /jobs/{job}/pause,
		POST /jobs/{job}/unpause`,
	Admin: `POST /everything/pause, POST /everything/resume, POST /catch-up, POST /jobs/pause, POST /jobs/unpause`,
}

// Every route lets in who may, and no one else, by its address and by a form of a page.
func TestRouteByRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	least := map[string]string{}
	for role, all := range may {
		for path := range strings.SplitSeq(all, ",") {
			least[strings.TrimSpace(path)] = role
		}
	}
	people := map[string]*window{"": w.as("")}
	for _, role := range append(Roles(), "finance") {
		people[role] = w.as("p-"+role, role)
	}
	lets := map[string][]string{
		Starter: {Starter, Operator, Admin}, Reader: {Reader, Approver, Operator, Admin}, Approver: {Approver, Operator, Admin}, Operator: {Operator, Admin}, Admin: {Admin},
	}
	for _, op := range append(slices.Clone(operations), operation{method: http.MethodPost, path: "/works"}) {
		name := op.method + " " + op.path
		role, known := least[name]
		if !known {
			t.Errorf("%s is not in the table of this test: who may do it?", name)
			continue
		}
		delete(least, name)
		for who, x := range people {
			status, text := x.ask(op.method, "/api/v1"+filled(op.path), "", map[string]string{"Authorization": "Bearer " + x.token})
			refused := status == http.StatusUnauthorized || status == http.StatusForbidden && strings.Contains(text, "it takes the role")
			if wanted := !slices.Contains(lets[role], who); refused != wanted {
				t.Errorf("%s by a person with the role %q: %d %s", name, who, status, text)
			}
		}
	}
	for name := range least {
		t.Errorf("there is no route %s", name)
	}
}

// Every page and the metrics ask for a role; forms are shown only to who may send them.
func TestPagesByRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &Options{Metrics: http.NotFoundHandler()})
	w.start("mail", "order:1", letter{Outcome: "the line went dead"}, saga.Review)
	stranger, finance, reader, operator := w.as(""), w.as("fay", "finance"), w.as("rita", Reader), w.as("olaf", Operator)
	pages := []string{"/", "/works", address("mail", "order:1"), "/destinations", "/inbox", "/jobs", "/findings", "/duplicates", "/acts"}
	for _, page := range append(pages, "/metrics") {
		if status, _ := stranger.get(page); status != http.StatusUnauthorized {
			t.Errorf("%s tells a stranger %d", page, status)
		}
	}
	for _, page := range pages {
		if status, _ := finance.get(page); status != http.StatusForbidden {
			t.Errorf("%s tells a person without a role of the console %d", page, status)
		}
		status, text := reader.get(page)
		if status != http.StatusOK || forms.MatchString(text) {
			t.Errorf("%s tells a reader %d, with a form of what a reader may not do:\n%s", page, status, text)
		}
		if status, _ := operator.get(page); status != http.StatusOK {
			t.Errorf("%s tells an operator %d", page, status)
		}
	}
	if status, _ := reader.get("/nowhere"); status != http.StatusNotFound {
		t.Errorf("a page that there is not: %d", status)
	}
	for _, open := range []string{"/healthz", "/readyz"} {
		if status, _ := stranger.get(open); status != http.StatusOK {
			t.Errorf("%s tells %d", open, status)
		}
	}
}

// The page of the inbox tells what was refused at the door, which is in no list.
func TestInboxTellsWhatWasRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if err := w.db.Blocked(t.Context(), intake.ByRefusal("wrong_signature"), "shop", 3); err != nil {
		t.Fatal(err)
	}
	if _, text := w.as("rita", Reader).get("/inbox"); !strings.Contains(text, "<bdi>shop</bdi> refused: wrong_signature 3 in 90 days") {
		t.Errorf("it shows\n%s", text)
	}
}

// What a verb of the command does has an address, which takes what the verb takes. What the door lacks is listed here, with its reason.
func TestVerbsHaveOperations(t *testing.T) {
	t.Parallel()
	missing := map[string]string{
		"migrate": "needs the address of a database, and no console runs on one that it does not fit", "migrate up": "as migrate", "migrate status": "as migrate",
		"serve": "is the console", "start": "is POST /works, which is no function of the desk", "token": "is for who has the file",
		"recover": "is said while no process runs, on the host of its witness",
		"export":  "is a file for who may read the database", "verify": "is for who has the file",
		"reconcile rebuild": "is for who has lost the ledger, and with it the console",
		"retention plan":    "reads much: a job or the command does it", "retention run": "as retention plan", "retention set": "is for who answers for what is kept", "hold": "as retention set", "erase": "as retention set",
	}
	apart := map[string]string{ // of verbs that are called otherwise
		"list": "/works", "show": "/works/{saga}/{work}", "history": "/works/{saga}/{work}/history", "approval": "/works/{saga}/{work}/approval", "deliver": "/messages/{name}/{key}", "batch": "/batches/{batch}",
		"destination list": "/destinations", "alerts list": "/alerts", "destination probe": "/destinations/{name}/probe", "inbox list": "/inbox", "inbox show": "/inbox/deliveries/{number}",
		"inbox release": "/inbox/sources/{source}/release", "inbox drop": "/inbox/sources/{source}/drop", "reconcile runs": "/jobs/runs", "drift list": "/drift", "drift decided": "/jobs/{job}/decisions", "schedule list": "/jobs", "schedule runs": "/jobs/{job}/runs", "schedule run": "/jobs/{job}/run", "schedule backfill": "/jobs/{job}/backfill",
		"schedule pause": "/jobs/{job}/pause", "schedule unpause": "/jobs/{job}/unpause", "schedule check": "/schedule/{text}", "reconcile plan": "/jobs/{job}/plan",
		"reconcile show": "/plans/{plan}", "reconcile apply": "/jobs/{job}/plans/{plan}/apply", "reconcile approve": "/jobs/{job}/approve",
	}
	for _, verdict := range plan.Verdicts {
		apart["drift "+string(verdict)] = "/jobs/{job}/findings/{verdict}"
	}
	elsewhere := map[string]string{ // flags that are no field of the operation
		"actor": "the token names who acts", "role": "the token names the roles", "saga": "it is in the address", "destination": "it has an address of its own",
		"all": "it has an address of its own", "acts": "it has an address of its own", "bodies": "it has an address of its own", "force": "a page and a program mean one thing",
		"external-id": "a list finds it by that", "exit-code": "a status says it", "next": "GET /schedule/{text} says them", "job": "the plan names it", "ask": "it is for who wrote the job",
		"filter": "POST /batches takes it", "rate": "POST /batches takes it", "max": "POST /batches takes it", "stop-after": "POST /batches takes it", "group": "GET /groups does",
	}
	for _, verb := range leaves("amends") {
		name := strings.TrimPrefix(verb, "amends ")
		if missing[name] != "" {
			continue
		}
		path := apart[name]
		if path == "" {
			path = "/" + strings.ReplaceAll(name, " ", "/")
		}
		i := slices.IndexFunc(operations, func(o operation) bool { return o.path == path || o.path == "/works/{saga}/{work}"+path })
		if i < 0 {
			t.Errorf("%s has no operation %s", verb, path)
			continue
		}
		cmd, _, err := command.Verbs().Find(strings.Fields(name))
		if err != nil {
			t.Fatal(err)
		}
		_, by := operations[i].takes().(interface{ Who() *desk.By })
		if says := cmd.Flag("actor") != nil; says != by {
			t.Errorf("%s keeps who says it: %t, and %s %s: %t", verb, says, operations[i].method, operations[i].path, by)
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if operations[i].field(f.Name) == nil && elsewhere[f.Name] == "" && f.Name != "help" {
				t.Errorf("%s takes --%s, and %s %s does not", verb, f.Name, operations[i].method, operations[i].path)
			}
		})
	}
}

// leaves are the verbs that do something.
func leaves(root string) (paths []string) {
	all := command.Verbs().Commands()
	for len(all) > 0 {
		cmd := all[0]
		if all = append(all[1:], cmd.Commands()...); cmd.Runnable() && (!cmd.HasSubCommands() || cmd.Name() == "migrate") {
			paths = append(paths, cmd.CommandPath())
		}
	}
	return slices.DeleteFunc(paths, func(p string) bool {
		return strings.HasPrefix(p, root+" help") || strings.HasPrefix(p, root+" completion")
	})
}

// What no page of the console can have sent changes nothing, and nothing is loaded from elsewhere.
func TestForeignRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &Options{Hosts: []string{"ops.example.com"}})
	w.start("mail", "order:1", letter{Outcome: "the line went dead"}, saga.Review)
	x := w.as("olaf", Operator)
	for host, want := range map[string]int{"ops.example.com": 200, "OPS.example.com:8080": 200, "evil.example": 421, "127.0.0.1.evil.example": 421, "[::1]:7117": 200} {
		if status, _ := x.ask("GET", "/", "", map[string]string{"Host": host, "Authorization": "Bearer " + x.token}); status != want {
			t.Errorf("asked for as %s it answers %d, want %d", host, status, want)
		}
	}
	if status, _ := x.ask("GET", "/readyz", "", map[string]string{"Host": "10.1.2.3"}); status != http.StatusOK {
		t.Errorf("what runs the process is refused: %d", status)
	}
	if status, _ := w.as("").ask("POST", "/sign-in", "--b\r\n", map[string]string{"Content-Type": "Multipart/form-data; boundary=b"}); status != http.StatusUnsupportedMediaType {
		t.Errorf("a stranger's files are taken: %d", status)
	}
	form := "do=/works/{saga}/{work}/resolve&part.saga=mail&part.work=order:1&flag.step=send&flag.did-not-happen=true&flag.reason=forged"
	for _, header := range []map[string]string{{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}} {
		status, text := x.ask("POST", "/do", form, with(header, "Content-Type", "application/x-www-form-urlencoded"))
		if status != http.StatusForbidden {
			t.Errorf("a form from %v: %d %s", header, status, text)
		}
	}
	for range 100 { // what a mail scanner or a prefetch does
		x.get(address("mail", "order:1"))
		x.ask("HEAD", address("mail", "order:1"), "", nil)
	}
	if signals, err := w.db.Signals(t.Context(), saga.ID{Saga: "mail", Work: "order:1"}); err != nil || len(signals) > 0 {
		t.Errorf("%v: something was said: %v", err, signals)
	}
	r := httptest.NewRequest(http.MethodGet, w.server.URL+"/sign-in", nil)
	rec := httptest.NewRecorder()
	w.server.Config.Handler.ServeHTTP(rec, r)
	csp := rec.Header().Get("Content-Security-Policy")
	has(t, csp, "default-src 'none'", "frame-ancestors 'none'", "script-src 'self';", "style-src 'self';")
	if strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") {
		t.Errorf("the policy allows more than the console's own: %s", csp)
	}
	for _, page := range []string{"/", "/works", address("mail", "order:1"), "/destinations"} {
		_, text := x.get(page)
		for _, wrong := range []string{`src="http`, `href="http`, " style=", " onclick=", "<script>"} {
			if strings.Contains(text, wrong) {
				t.Errorf("%s has %q", page, wrong)
			}
		}
	}
}

// What a browser keeps is not the token, answers nothing but pages, and nothing any more once its person has signed out, or the line of
// the token is gone. Without TLS it is sent to one path only, of which no other server of the host knows; with TLS no other can have set
// it. A notice that another server set is not shown.
func TestTheCookieIsNotTheToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	x := w.as("anna", Admin)
	site, err := url.Parse(w.server.URL + x.place + "/")
	if err != nil {
		t.Fatal(err)
	}
	kept := x.c.Jar.Cookies(site)
	if len(kept) != 1 || strings.Contains(kept[0].Value, x.token) || len(x.place) < 20 {
		t.Fatalf("the browser keeps %v below %q", kept, x.place)
	}
	if elsewhere := x.c.Jar.Cookies(&url.URL{Scheme: "http", Host: site.Host, Path: "/works"}); len(elsewhere) > 0 {
		t.Errorf("every port of the host is sent %v", elsewhere)
	}
	stolen := w.as("")
	as := func(path string, header map[string]string) int {
		stolen.place = ""
		status, _ := stolen.ask("GET", path, "", header)
		return status
	}
	cookie := kept[0].Name + "=" + kept[0].Value
	for path, want := range map[string]int{x.place + "/works": 200, "/works": 401, "/~other/works": 401, "/api/v1/status": 401, x.place + "/api/v1/status": 401, x.place + "/metrics": 404} {
		if got := as(path, map[string]string{"Cookie": cookie}); got != want {
			t.Errorf("with the cookie %s answers %d, want %d", path, got, want)
		}
	}
	if got := as("/api/v1/status", map[string]string{"Authorization": "Bearer " + kept[0].Value}); got != 401 {
		t.Errorf("the cookie is a token: %d", got)
	}
	said := saidCookie + "=" + base64.RawURLEncoding.EncodeToString([]byte(`{"good":true,"text":"Run: curl evil"}`))
	stolen.place = ""
	if _, text := stolen.ask("GET", x.place+"/works", "", map[string]string{"Cookie": cookie + "; " + said + ".x"}); strings.Contains(text, "curl evil") {
		t.Error("the notice of another server is shown")
	}
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	x.ask("POST", "/sign-out", "", form)
	if got := as(x.place+"/works", map[string]string{"Cookie": cookie}); got != 401 {
		t.Errorf("signed out, the cookie still answers %d", got)
	}
	for _, header := range []map[string]string{{"X-Forwarded-Proto": "HTTPS"}, {"X-Forwarded-Proto": "https, http"}, {"Forwarded": `for=192.0.2.1; proto="https"`}} {
		r := httptest.NewRequest(http.MethodPost, w.server.URL+"/sign-in", strings.NewReader("token="+x.token))
		for name, value := range with(header, "Content-Type", form["Content-Type"]) {
			r.Header.Set(name, value)
		}
		rec := httptest.NewRecorder()
		w.server.Config.Handler.ServeHTTP(rec, r)
		c := rec.Result().Cookies()
		if len(c) != 1 || !strings.HasPrefix(c[0].Name, "__Host-") || !c[0].Secure || c[0].Path != "/" || rec.Header().Get("Location") != "/" {
			t.Errorf("%v: the browser is given %v and goes to %q", header, c, rec.Header().Get("Location"))
		}
	}
}

// Below a path every link, form and redirect stays below it.
func TestBelowAPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &Options{Path: "/x/y/"})
	w.start("mail", "a/b?c", letter{Outcome: "the line went dead"}, saga.Review)
	x := w.as("") // its jar is empty
	x.base = "/x/y"
	token, err := w.tokens.Issue(Person{"anna", []string{Admin}}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	status, text := x.get("/x/y/sign-in?token=" + token + "&to=%2Fworks")
	if status != http.StatusOK || !strings.Contains(text, "<h1><bdi>Instances</bdi>") {
		t.Fatalf("after signing in: %d %s", status, text)
	}
	page := "/x/y" + address("mail", "a/b?c")
	for _, path := range []string{"/x/y", "/x/y/", "/x/y/works", page, "/x/y/destinations", "/x/y/jobs", "/x/y/acts", "/x/y/nowhere"} {
		_, text := x.get(path)
		for _, link := range regexp.MustCompile(`(?:href|action|src)="([^"#]*)"`).FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(link[1], "/x/y/") {
				t.Errorf("%s leads to %s", path, link[1])
			}
		}
	}
	_, text = x.get(page)
	has(t, x.sendTo("/x/y/do", text, "It happened", map[string]string{"happened": "id", "reason": "found"}), "said good", "<h1><bdi>a/b?c</bdi>")
	for _, beside := range []string{"/works", "/x/yworks", "/x/y//works"} {
		if status, _ := x.get(beside); status != http.StatusNotFound {
			t.Errorf("%s, beside the path: %d", beside, status)
		}
	}
}

// A token is let in until its time is over or its line is deleted; a file that cannot be read lets
// no one in.
func TestTokens(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	tokens, err := OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := tokens.Issue(Person{"maria", []string{Operator, "finance"}}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	is := func(name string, at time.Time) {
		t.Helper()
		if p, _ := tokens.of(text, at); p.Name != name {
			t.Errorf("the token is %q's, want %q", p.Name, name)
		}
	}
	is("maria", time.Now())
	is("", time.Now().Add(time.Hour+time.Second))
	raw, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(raw), text) || strings.Contains(string(raw), strings.TrimPrefix(text, "amends_")) {
		t.Errorf("%v: the file has the token itself: %s", err, raw)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: others can read the file: %v", err, info.Mode())
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# who left\n" + string(raw))
	is("maria", time.Now())
	write("# taken away\n")
	is("", time.Now())
	write(string(raw) + "{half a line\n")
	is("maria", time.Now())
	if _, err := tokens.of("a stranger's", time.Now()); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("it does not say what is wrong with the file: %v", err)
	}
	if _, err := tokens.of("a stranger's", time.Now()); err != nil {
		t.Errorf("each request of a stranger says it again: %v", err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenTokens(file); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("every user can let themselves in: %v", err)
	}
	if _, err := OpenTokens(file); err == nil {
		t.Error("a file that is no file of tokens is opened")
	}
	for _, p := range []Person{{"", []string{Admin}}, {"x", nil}} {
		if _, err := tokens.Issue(p, time.Hour); err == nil {
			t.Errorf("a token for %v is issued", p)
		}
	}
}

// A proxy's headers say who asks only from the proxy's own address.
func TestHeader(t *testing.T) {
	t.Parallel()
	who := Header("X-User", "X-Roles", netip.MustParsePrefix("10.0.0.0/30"))
	for from, want := range map[string]string{"10.0.0.2:4711": "maria", "[::ffff:10.0.0.2]:4711": "maria", "10.0.0.4:4711": "", "@": "", "[::1]:80": ""} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = from
		r.Header.Set("X-User", " maria ")
		r.Header.Set("X-Roles", "operator, finance,")
		if p := who(r); p.Name != want || want != "" && !slices.Equal(p.Roles, []string{"operator", "finance"}) {
			t.Errorf("from %s it is %v, want %q", from, p, want)
		}
	}
	for header, second := range map[string]string{"X-User": "mallory", "X-Roles": "admin"} { // a proxy that appends leaves its client's before its own
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "10.0.0.2:4711"
		r.Header.Set("X-User", "maria")
		r.Header.Set("X-Roles", "reader")
		if r.Header.Add(header, second); who(r).Name != "" {
			t.Errorf("%s comes twice, and it is %v", header, who(r))
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.2:4711"
	r.Header.Set("X-User", "maria")
	r.Header.Set("X-Roles", "cn=finance,admin,dc=example")
	if p := who(r); p.Name != "" {
		t.Errorf("a distinguished name makes %v", p)
	}
}

// After signing in a browser goes to a page of the console and nowhere else.
func TestOwnPath(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"/works?status=review": "/works?status=review", "": "/", "https://evil.example/": "/", "//evil.example": "/", `/\evil.example`: "/",
		"works": "/", "javascript:alert(1)": "/", "/a\nb": "/",
	} {
		if got := ownPath(to); got != want {
			t.Errorf("ownPath(%q) is %q, want %q", to, got, want)
		}
	}
}

// Two windows show one review. One settles it; the other, which still shows it, is told that it is
// settled, and changes nothing.
func TestTwoWindows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start("mail", "order:1", letter{Outcome: "the line went dead"}, saga.Review)
	first, second := w.as("anna", Operator), w.as("ben", Operator)
	page := address("mail", "order:1")
	_, shown := second.get(page)
	has(t, shown, "the line went dead", "What is safe to do", "is done again, under a new key", "it will have happened twice")
	has(t, first.press(page, "It happened", map[string]string{"happened": "letter_9", "reason": "it lies in the outbox", "wait": "50s"}), `said good`, "The work is now completed")
	has(t, second.send(shown, "It did not happen", map[string]string{"reason": "I think not"}), `said bad`, "it is not what you saw any more")
	s, err := w.c.Show(t.Context(), saga.ID{Saga: "mail", Work: "order:1"})
	if err != nil || s.Status != saga.Completed || s.Steps["send"].ExternalID != "letter_9" || s.Steps["send"].Attempts != 1 {
		t.Errorf("%v: it is %+v", err, s)
	}
	_, text := second.get(page)
	has(t, text, "anna", "it lies in the outbox")
	if strings.Contains(text, "I think not") {
		t.Error("what the second person said is in the history")
	}
}

// Inputs and results are hidden until an operator asks for them, and then it is on record first.
func TestBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start("mail", "order:1", letter{To: "4111-1111"}, saga.Completed)
	rita, olaf := w.as("rita", Reader), w.as("olaf", Operator)
	page := address("mail", "order:1")
	for path, x := range map[string]*window{page: olaf, page + "&bodies=1": rita, "/api/v1/works/mail/order:1/history": olaf, "/api/v1/works/mail/order:1/bodies": rita} {
		if _, text := x.get(path); strings.Contains(text, "4111-1111") {
			t.Errorf("%s shows the input", path)
		}
	}
	if _, text := rita.get("/acts"); strings.Contains(text, "bodies of") {
		t.Errorf("a look that saw nothing is on record:\n%s", text)
	}
	_, text := olaf.get(page + "&bodies=1")
	has(t, text, "4111-1111", "it is on record that you looked")
	_, text = rita.get("/acts")
	has(t, text, "olaf", "bodies of mail order:1")
	otto := w.as("otto", Operator)
	if status, _ := otto.ask("GET", "/api/v1/works/mail/order:1/bodies", "", map[string]string{"Sec-Fetch-Site": "cross-site"}); status != http.StatusForbidden {
		t.Errorf("another site has a person look: %d", status)
	}
	if _, text := rita.get("/acts"); strings.Contains(text, "otto") {
		t.Error("it is on record that a person looked, who did not")
	}
	r := httptest.NewRequest(http.MethodGet, w.server.URL+"/api/v1/works/mail/order:1/bodies", nil)
	r.Header.Set("Authorization", "Bearer "+otto.token)
	rec := httptest.NewRecorder()
	w.server.Config.Handler.ServeHTTP(rec, r)
	if rec.Code != http.StatusOK || rec.Header().Get("Cache-Control") != "no-store" || rec.Header().Get("ETag") != "" {
		t.Errorf("%d: a browser keeps bodies on disk: %v", rec.Code, rec.Header())
	}
}

// The page of what was erased says so, and offers nothing to look at that is not there.
func TestAnErasedPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start("mail", "order:1", letter{To: "4111-1111"}, saga.Completed)
	all, err := retention.Erase(t.Context(), w.db, retention.Erasure{Work: "order:1", By: saga.Actor{Name: "ada", Reason: "she asked"}})
	if err != nil || len(all.Works) != 1 || all.Works[0].As == "" {
		t.Fatalf("erased %+v, %v", all, err)
	}
	_, text := w.as("olaf", Operator).get(address("mail", all.Works[0].As))
	has(t, text, "erased", "completed")
	for _, no := range []string{"order:1<", "Timeline", "Show inputs and results"} {
		if strings.Contains(text, no) {
			t.Errorf("it has %q", no)
		}
	}
}

// A long history comes in pages, the newest records first, and no record is left out.
func TestALongHistoryComesInPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start("ask", "order:1", letter{}, saga.Waiting)
	id := saga.ID{Saga: "ask", Work: "order:1"}
	for n := range 2 * mostRecords {
		if err := w.c.Extend(t.Context(), id, "", time.Now().Add(time.Duration(n+2)*time.Hour), saga.Actor{Name: "ada", Reason: "longer"}); err != nil {
			t.Fatal(err)
		}
	}
	all := 0
	for tick := time.NewTicker(10 * time.Millisecond); all < 2*mostRecords+2; <-tick.C {
		records, err := w.db.History(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		all = len(records)
	}
	x, page, seen := w.as("rita", Reader), address("ask", "order:1"), 0
	earlier := regexp.MustCompile(`href="([^"]*)">Earlier records`)
	for page != "" {
		_, text := x.get(page)
		text = text[strings.Index(text, "<h2>What happened</h2>"):]
		n := strings.Count(text, `<tr><td class="num">`)
		if seen += n; n == 0 || n > mostRecords {
			t.Fatalf("a page has %d records", n)
		}
		link := earlier.FindStringSubmatch(text)
		if page = ""; link != nil {
			page = strings.TrimPrefix(htmlText(link[1]), x.place)
		}
	}
	if seen != all {
		t.Errorf("the pages have %d records of %d", seen, all)
	}
}

// Who starts reads where that stands, and nothing else; a role with a saga behind it is one where that saga is named.
func TestRolesOfOneSaga(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start("mail", "order:1", letter{Outcome: "the line went dead"}, saga.Review)
	sam, olaf := w.as("sam", Starter), w.as("olaf", Operator+"@mail", Starter+"@pay")
	start := func(x *window, name, work string, want int) {
		t.Helper()
		if status, text := x.post("/api/v1/works", fmt.Sprintf(`{"saga":%q,"workId":%q,"input":{"To":"Alice"}}`, name, work)); status != want {
			t.Errorf("to start %s %s: %d, want %d: %s", name, work, status, want, text)
		}
	}
	start(sam, "mail", "of-sam", http.StatusCreated)
	start(olaf, "pay", "of-olaf", http.StatusCreated)
	start(olaf, "ask", "of-olaf", http.StatusForbidden)
	start(w.as("rita", Reader), "mail", "of-rita", http.StatusForbidden)
	for _, c := range []struct {
		x    *window
		path string
		want int
	}{
		{sam, "/api/v1/works/mail/of-sam", 200}, {sam, "/api/v1/works/mail/order:1", 403}, {sam, "/api/v1/works", 403}, {sam, "/api/v1/works/mail/of-sam/history", 403}, {sam, "/works", 403},
		{olaf, "/api/v1/works?saga=mail", 200}, {olaf, "/api/v1/works", 403}, {olaf, "/api/v1/works?saga=pay", 403}, {olaf, "/api/v1/works/pay/of-olaf", 200},
		{olaf, "/api/v1/works/mail/order:1/bodies", 200}, {olaf, "/", 200}, {olaf, "/works?saga=mail", 200}, {olaf, "/works?saga=pay", 403}, {olaf, "/jobs", 403},
	} {
		if status, text := c.x.get(c.path); status != c.want {
			t.Errorf("%s answers %d, want %d: %s", c.path, status, c.want, text)
		}
	}
	w.start("mail", "order:2", letter{Outcome: "the line went dead"}, saga.Review)
	var plan desk.BatchPlan // who may begin a batch of a saga's works may look at it, and hold it
	if status, text := olaf.post("/api/v1/batches", `{"act":"pause","reason":"r","saga":"mail","filter":["status=review"]}`); status != http.StatusBadRequest {
		t.Errorf("an act that is not said to many: %d %s", status, text)
	}
	if status, text := olaf.post("/api/v1/batches", `{"act":"cancel","reason":"r","saga":"mail","filter":["status=review","prefix=order:2"]}`); status != http.StatusOK || json.Unmarshal([]byte(text), &plan) != nil || plan.Batch == "" {
		t.Fatalf("a batch: %d %s", status, text)
	}
	for x, want := range map[*window][2]int{olaf: {200, 409}, sam: {403, 403}, w.as("pia", Operator+"@pay"): {403, 403}} {
		status, _ := x.get("/api/v1/batches/" + plan.Batch)
		if shown, _ := x.get(address("amends-batch", plan.Batch)); shown != status {
			t.Errorf("its page answers %d, and the API %d", shown, status)
		}
		held, text := x.post("/api/v1/works/amends-batch/"+plan.Batch+"/resume", `{"reason":"r"}`) // it is not paused
		if got := [2]int{status, held}; got != want {
			t.Errorf("a batch of another's: %v, want %v: %s", got, want, text)
		}
	}
	for path, body := range map[string]string{ // what the address names is what the role is for: a body names no other
		"/api/v1/works/mail/order:1/pause": `{"reason":"r","saga":"pay","work":"of-olaf"}`, "/api/v1/sagas/mail/pause": `{"reason":"r","saga":"pay"}`,
	} {
		if status, text := olaf.post(path, body); status != http.StatusBadRequest || !strings.Contains(text, "takes no") {
			t.Errorf("%s with %s: %d %s", path, body, status, text)
		}
	}
	_, page := olaf.get(address("mail", "order:1"))
	if text := olaf.send(strings.ReplaceAll(page, `name="part.work"`, `name="flag.work"`), "Give it up and undo", map[string]string{"reason": "r"}); !strings.Contains(text, "said bad") {
		t.Errorf("a form names another instance:\n%s", text)
	}
	if status, _ := olaf.post("/api/v1/sagas/pay/pause", `{"reason":"it is not his"}`); status != http.StatusForbidden {
		t.Errorf("another saga is paused: %d", status)
	}
	has(t, olaf.press(address("mail", "order:1"), "It happened", map[string]string{"happened": "letter_9", "reason": "found", "wait": "50s"}), "said good", "The work is now completed")
	grouped := Person{"gil", []string{"finance@example.com", Operator + "@pay"}}
	if in := grouped.in("mail"); !slices.Contains(in.Roles, "finance@example.com") || in.may(Operator) {
		t.Errorf("where mail is named, gil is %v", in.Roles)
	}
	fay := w.as("fay", Reader, Approver+"@pay", "finance@pay")
	w.until("pay", "of-olaf", saga.Waiting)
	_, text := fay.get(address("pay", "of-olaf"))
	has(t, text, "<button>Approve</button>")
	has(t, fay.send(text, "Approve", map[string]string{"reason": "as read"}), "said good")
}

// A character that turns the direction of writing is drawn as what it is, and a form says an id with it back as it is.
func TestUnseenCharacters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start("mail", "order\u202e:1", letter{To: "Alice\u202eyrollaM ot \u2066x", Outcome: "the line went dead"}, saga.Review)
	x := w.as("olaf", Operator)
	_, text := x.get(address("mail", "order\u202e:1") + "&bodies=1")
	has(t, text, `Alice\u202eyrollaM ot \u2066x`, `order\u202e:1`)
	_, text = x.get("/works?reason=in-doubt&step=send")
	has(t, text, `value="in-doubt"`, `value="send"`, `order\u202e:1`)
	if _, text := x.get("/works?reason=in-doubt&step=other"); strings.Contains(text, "order") && strings.Contains(text, `<bdi>order`) {
		t.Error("a step that it is not about finds it")
	}
	has(t, x.press(address("mail", "order\u202e:1"), "It happened", map[string]string{"happened": "letter_9", "reason": "found", "wait": "50s"}), "said good", "The work is now completed")
}

// Of two people who decide at the same moment one is followed, and the other is told.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for round := range 5 {
		id := fmt.Sprint("order:", round)
		w.start("mail", id, letter{Outcome: "the line went dead"}, saga.Review)
		people := []*window{w.as("anna", Operator), w.as("ben", Operator)}
		page := address("mail", id)
		shown, told := make([]string, len(people)), make([]string, len(people))
		for i, x := range people {
			_, shown[i] = x.get(page)
		}
		var both sync.WaitGroup
		for i, x := range people {
			both.Go(func() {
				told[i] = x.send(shown[i], "It happened", map[string]string{"happened": fmt.Sprint("letter_", i), "reason": "found"})
			})
		}
		both.Wait()
		s, err := w.c.Show(t.Context(), saga.ID{Saga: "mail", Work: id})
		if err != nil {
			t.Fatal(err)
		}
		for i := range people {
			followed := s.Steps["send"].ExternalID == fmt.Sprint("letter_", i)
			if followed != strings.Contains(told[i], "said good") || followed == strings.Contains(told[i], "said bad") {
				t.Errorf("of %s the ledger has %q, and person %d is told:\n%s", id, s.Steps["send"].ExternalID, i, told[i])
			}
		}
	}
}

// What a person holds is on the first page, with the button that lets it go on, for who may.
func TestHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	admin, reader := w.as("ada", Admin), w.as("rita", Reader)
	for _, path := range []string{"/everything/pause", "/sagas/mail/pause", "/destinations/mail%2Fsend/pause"} {
		if status, text := admin.post("/api/v1"+path, `{"reason":"the books move"}`); status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, text)
		}
	}
	_, text := reader.get("/")
	has(t, text, "Held by a person", "saga:mail", "the books move", "mail/send")
	if forms.MatchString(text) {
		t.Error("a reader is offered to let it go on")
	}
	has(t, admin.press("/", "Let everything go on", map[string]string{"reason": "they have"}), "said good")
	for range 2 {
		has(t, admin.press("/", "Let it go on", map[string]string{"reason": "they have"}), "said good")
	}
	if _, text := reader.get("/"); strings.Contains(text, "the books move") {
		t.Errorf("it is held still:\n%s", text)
	}
}

// A person without a vote sees what is to be approved; one with it votes with the roles of the token.
func TestVote(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start("pay", "bill:1", letter{To: "Otto"}, saga.Waiting)
	page := address("pay", "bill:1")
	rita := w.as("rita", Reader)
	_, text := rita.get(page)
	has(t, text, "To approve: <bdi>step")
	for _, path := range []string{page, "/", "/api/v1/approvals", "/api/v1/works/pay/bill:1", "/api/v1/works/pay/bill:1/approval"} {
		if _, text := rita.get(path); strings.Contains(text, "Otto") {
			t.Errorf("%s shows a reader what an instance was started with:\n%s", path, text)
		}
	}
	if _, seen := w.as("olaf", Operator).get(page); !strings.Contains(seen, "Otto") {
		t.Error("an operator is not shown what is decided about")
	}
	if strings.Contains(text, "<button>Approve</button>") {
		t.Error("a reader is offered a vote")
	}
	has(t, text, "You have no vote here", "one of the roles", "finance", "approver or operator", "yours:", "reader")
	if _, text := w.as("sam", Approver, "sales").get(page); strings.Contains(text, "<button>Approve</button>") || !strings.Contains(text, "You have no vote here") {
		t.Errorf("who has another role is offered a vote, or is not told why not:\n%s", text)
	}
	digest := regexp.MustCompile(`"digest": "([^"]+)"`)
	_, doc := w.as("olaf", Operator).get("/api/v1/works/pay/bill:1/approval")
	body := `{"reason":"fine","shown":"` + digest.FindStringSubmatch(doc)[1] + `"}`
	for who, want := range map[*window]string{
		rita:                           "it takes the role approver or operator, and one of those that the approval names",
		w.as("sam", Approver, "sales"): "it takes one of the roles finance", w.as("otto", Operator): "it takes one of the roles finance",
	} {
		if status, text := who.post("/api/v1/works/pay/bill:1/approve", body); status != 403 && status != 409 || !strings.Contains(text, want) {
			t.Errorf("it is told %d %s, want %q", status, text, want)
		}
	}
	has(t, w.as("maria", Operator, "finance").press(page, "Approve", map[string]string{"reason": "looked at"}), "said good") // the token of docs/console.md
	w.until("pay", "bill:1", saga.Completed)
}

// An approval shows what its definition says about it, then how it stands, then the buttons, and the document last; what is no address of
// the web is text.
func TestAnApprovalSaysWhatItIsAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start("pay", "bill:1", letter{To: "Otto"}, saga.Waiting)
	w.start("pay", "bill:2", letter{To: "Anna", Outcome: "held"}, saga.Waiting)
	fay := w.as("fay", Approver, "finance")
	const link = `<a href="https://books.example/bills?to=Otto" rel="noreferrer">`
	about := []string{"Pay Otto", "EUR 1,200.00", link, "cost centre", "4711", "0 of 1", "yours"}
	for path, rest := range map[string][]string{
		address("pay", "bill:1"): {"<button>Approve</button>", "<button>Reject</button>", `<pre class="shown"`, "&#34;about&#34;"},
		"/":                      {`<pre class="shown"`, "&#34;about&#34;", "<button>Approve</button>", "<button>Reject</button>"},
	} {
		_, text := fay.get(path)
		at := max(strings.Index(text, "To approve"), 0)
		for _, want := range append(about, rest...) {
			i := strings.Index(text[at:], want)
			if i < 0 {
				t.Fatalf("%s does not say %q at its place:\n%s", path, want, text)
			}
			at += i
		}
	}
	_, text := fay.get(address("pay", "bill:2"))
	if has(t, text, "<bdi>javascript:alert(1)</bdi>"); strings.Contains(text, `href="javascript`) || strings.Contains(text, "ZgotmplZ") {
		t.Errorf("a link that runs a program:\n%s", text)
	}
	for _, path := range []string{"/api/v1/approvals", "/api/v1/works/pay/bill:1", "/api/v1/works/pay/bill:1/approval"} {
		_, text := fay.get(path)
		has(t, text, `"amount": "EUR 1,200.00"`, `"name": "cost centre"`)
	}
}

// On the first page a vote stands behind the document that it is about, and is for that one: it does not count for what came instead. Where
// the document is long, or is not shown to the person, there is the way to it and no button.
func TestVoteOnTheFirstPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start("pay", "bill:1", letter{To: "Otto"}, saga.Waiting)
	fay := w.as("fay", Approver, "finance")
	_, page := fay.get("/")
	if _, err := w.c.Start(t.Context(), "pay", "bill:1", letter{To: "Eve"}, &saga.StartOptions{Revision: "2"}); err != nil {
		t.Fatal(err)
	}
	next := page
	for tick := time.NewTicker(10 * time.Millisecond); !strings.Contains(next, "Eve"); <-tick.C {
		_, next = fay.get("/")
	}
	has(t, fay.send(page, "Approve", map[string]string{"reason": "Otto is known"}), "said bad", "was shown")
	w.until("pay", "bill:1", saga.Waiting)
	has(t, fay.send(next, "Approve", map[string]string{"reason": "Eve is known"}), "said good")
	w.until("pay", "bill:1", saga.Completed)

	w.start("pay", "bill:2", letter{To: strings.Repeat("Otto", 1000)}, saga.Waiting)
	for name, x := range map[string]*window{"a long document": fay, "a document of another saga": w.as("rob", Reader, "approver@pay", "finance@pay")} {
		_, text := x.get("/")
		if has(t, text, "Look and decide"); forms.MatchString(text) {
			t.Errorf("%s: there is a vote beside none", name)
		}
	}
}

// The same vote again, before a coordinator has read the first and afterwards, is answered as the first was: by the command, by
// HTTP and by the page, and it is one vote.
func TestTheSameVoteAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start("pay", "bill:1", letter{To: "Otto"}, saga.Waiting)
	id, fay := saga.ID{Saga: "pay", Work: "bill:1"}, w.as("fay", Approver, "finance")
	a, err := w.c.Approval(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	_, page := fay.get(address("pay", "bill:1"))
	w.halt()
	again := func(when string) {
		t.Helper()
		for range 3 {
			status, text := fay.post("/api/v1/works/pay/bill:1/approve", `{"reason":"fine","shown":"`+a.Digest+`"}`)
			if status != http.StatusOK || !strings.Contains(text, `"stored": true`) {
				t.Errorf("%s by HTTP: %d %s", when, status, text)
			}
			var out, errs bytes.Buffer
			status = command.Run(t.Context(), &command.Line{
				Args: []string{"approve", "bill:1", "--shown", a.Digest, "--actor", " FAY", "--reason", "fine", "--role", "finance"},
				Env:  func(string) string { return "" }, In: strings.NewReader(""), Out: &out, Err: &errs, DB: w.db,
			})
			if status != 0 {
				t.Errorf("%s by the command: %d %s", when, status, &errs)
			}
			has(t, fay.send(page, "Approve", map[string]string{"reason": "fine", "wait": "0s"}), "said good")
		}
	}
	again("before it is read")
	w.run()
	w.until("pay", "bill:1", saga.Completed)
	again("behind its end")
	signals, err := w.db.Signals(t.Context(), id)
	if err != nil || len(signals) != 1 {
		t.Errorf("%d votes are stored: %+v (%v)", len(signals), signals, err)
	}
}

// Who acts is who the token names, whatever the request says; a request says only what a verb takes,
// and what looks like a flag is a name.
func TestSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start("mail", "--db=/etc/passwd", letter{Outcome: "the line went dead"}, saga.Review)
	x := w.as("olaf", Operator)
	path := "/api/v1/works/mail/--db=%2Fetc%2Fpasswd/"
	for body, want := range map[string]int{
		`{"reason":"r","step":"send","happened":"id","actor":"anna"}`: 400,
		`{"reason":"r","step":"send","happened":"id","db":"x"}`:       400,
		`{"step":"send","happened":"id"}`:                             400,
		`{"reason":"r","step":"other","happened":"id"}`:               409,
		`{"reason":"r","step":"send","happened":"id","wait":"1h"}`:    400,
		`["reason"]`: 400,
		`{"reason":"` + strings.Repeat("x", maxBody) + `"}`:            413,
		`{"reason":"r","step":"send","happened":"id","dry-run":true}`:  200,
		`{"reason":"r","step":"send","happened":"id","dry-run":"yes"}`: 400,
	} {
		if status, text := x.post(path+"resolve", body); status != want {
			t.Errorf("%.60s: %d %s, want %d", body, status, text, want)
		}
	}
	status, text := x.post(path+"resolve", `{"reason":"found","step":"send","happened":"id_7","wait":"30s"}`)
	var out struct {
		Applied bool                               `json:"applied"`
		Signal  struct{ Actor, Reason, ID string } `json:"signal"`
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil || status != 200 || !out.Applied || out.Signal.Actor != "olaf" {
		t.Errorf("%v: %d %s", err, status, text)
	}
	if status, text := x.get("/api/v1/works/mail/nothing"); status != 404 || !strings.Contains(text, `"code":"not-found"`) {
		t.Errorf("what there is not: %d %s", status, text)
	}
	if status, text := x.get("/api/v1/nowhere"); status != 404 || !strings.Contains(text, "openapi.json") {
		t.Errorf("an address that there is not: %d %s", status, text)
	}
}

// Names and bodies that strangers wrote are shown as they are, and do nothing.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	reader, operator := w.as("rita", Reader), w.as(`<b>olaf</b>`, Operator)
	hostile := []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "order:\u202e0001:redro", "../../etc/passwd", "a//b?c=d#e&f", "{{.}}", "' or 1=1 --",
		strings.Repeat("long ", 51),
	}
	for i, id := range hostile {
		w.start("mail", id, letter{To: "<script>body</script>\u202e" + strings.Repeat("y", 255<<10), Outcome: "<script>error</script>\u202e\x00\x1b[2K" + id}, saga.Review)
		_, page := operator.get(address("mail", id) + "&bodies=1")
		_, needs := reader.get("/")
		_, list := reader.get("/works?prefix=" + fmt.Sprintf("%.9s", "")) // all of them
		for name, text := range map[string]string{"instance": page, "needs": needs, "list": list} {
			for _, raw := range []string{"<script>alert", "<script>body", "<script>error", "<img", "<b>olaf", "\x00", "{{.}}<"} {
				if raw != "{{.}}<" && strings.Contains(text, raw) {
					t.Errorf("the page %s of %q has %q as it came", name, id, raw)
				}
			}
		}
		if !strings.Contains(page, "What is safe to do") {
			t.Errorf("the page of %q does not come:\n%.2000s", id, page)
		}
		has(t, operator.press(address("mail", id), "It happened", map[string]string{"happened": fmt.Sprint("id", i), "reason": "<script>why</script>\x00"}), "said good")
		_, page = reader.get(address("mail", id))
		if strings.Contains(page, "<script>why") || !strings.Contains(page, "&lt;script&gt;why") {
			t.Errorf("what a person said of %q is not shown as text", id)
		}
	}
}
