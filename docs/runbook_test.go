package docs_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	_ "modernc.org/sqlite"

	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
)

// docs/runbook.md, typed as it is written, section by section, beside a process of the example orders-to-accounting whose
// servers fail and whose webhooks come late, twice and forged. What each section is about happens first.
func TestRunbook(t *testing.T) {
	pace.Day(t)
	for name, address := range map[string]func(t *testing.T, dir string) string{
		"SQLite":   func(_ *testing.T, dir string) string { return filepath.Join(dir, "ledger.db") },
		"Postgres": func(t *testing.T, _ string) string { t.Helper(); return pgtest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newIncident(t, address)
			_, text, _ := strings.Cut(read(t, "runbook.md"), "\n## ")
			var seen []string
			for section := range strings.SplitSeq(text, "\n## ") {
				name, body, _ := strings.Cut(section, "\n")
				happens, known := i.happens()[name]
				if !known {
					t.Fatalf("runbook.md has a section %q, and no test says how that comes about", name)
				}
				seen = append(seen, name)
				if !t.Run(name, func(t *testing.T) { i.play(t, body, happens) }) {
					t.FailNow() // the next one would go on where this one stopped
				}
			}
			for name := range i.happens() {
				if !slices.Contains(seen, name) {
					t.Errorf("runbook.md has no section %q", name)
				}
			}
		})
	}
}

// seedOfTheRunbook draws the faults: the share below meets one, and of so many webhooks as many are forged, come twice or are at first lost.
const (
	seedOfTheRunbook = 7
	faultsOfAll      = 0.15
	secretOfTheShop  = "whsec_YSBzZWNyZXQgb2YgdGhlIHNob3A=" //nolint:gosec // the shop is a fake
)

// incident is the example, with its program, its servers and what the page is about.
type incident struct {
	*shell
	root          string
	world         *outside.World
	mail, books   *counter
	place         map[string]any
	program, bins string
	running       *exec.Cmd
	leash         io.Closer
	ledger        string
	words         map[string]string // what the page calls something, and what it is
}

// counter is a server that stands before another one, and refuses what is asked of it or loses its answers.
type counter struct {
	url     string
	answer  atomic.Int32 // status of a refusal; 0: none
	lost    atomic.Int32 // so many answers are lost from now on
	dropped atomic.Int32 // so many requests are
}

func newCounter(t *testing.T, before string) *counter {
	t.Helper()
	to, err := url.Parse(before)
	if err != nil {
		t.Fatal(err)
	}
	c, next := &counter{}, httputil.NewSingleHostReverseProxy(to)
	next.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost && c.answer.Load() != 0:
			http.Error(w, `{"code":"closed","message":"the period is closed"}`, int(c.answer.Load()))
		case r.Method == http.MethodPost && c.lost.Add(-1) >= 0:
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case r.Method == http.MethodPost && c.dropped.Add(-1) >= 0:
			panic(http.ErrAbortHandler)
		default:
			next.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

func newIncident(t *testing.T, address func(*testing.T, string) string) *incident {
	t.Helper()
	i := &incident{shell: newShell(t), root: t.TempDir(), words: map[string]string{}}
	t.Logf("the seed is %d", seedOfTheRunbook)
	i.ledger = address(t, i.root)
	door := freePort(t)
	i.world = outside.Start(outside.Config{
		Seed: seedOfTheRunbook, Orders: 4, Faults: faultsOfAll, Timing: outside.DefaultTiming,
		Hooks: outside.Hooks{Secret: secretOfTheShop, Receivers: []string{"http://" + door + "/webhooks/shop"}, Drops: 0.3, Duplicates: 0.3, Forgeries: 1},
	})
	t.Cleanup(i.world.Close)
	i.mail, i.books = newCounter(t, i.world.MailURL), newCounter(t, i.world.BooksURL)
	i.place = map[string]any{
		"shop": i.world.ShopURL, "books": i.books.url, "mail": i.mail.url, "ledger": i.ledger, "door": door, "secret": secretOfTheShop,
		"sweep": true, "answer": time.Second, "settle": outside.DefaultTiming.Settled() + time.Second,
	}
	if err := os.Mkdir(filepath.Join(i.root, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	i.program = filepath.Join(i.root, "orders-to-accounting")
	for _, command := range []string{
		"go install github.com/amends-dev/amends/cmd/amends@latest",
		`(cd "$CHECKOUT/examples/orders-to-accounting" && command go build -o ` + i.program + " .)",
		"export AMENDS_DB='" + i.ledger + "' TMPDIR=" + i.root + "/tmp XDG_STATE_HOME=" + i.root + "/state", // a ledger in a folder for temporary files has no witness
	} {
		i.typed("runbook.md", command)
	}
	t.Cleanup(func() { i.stop() })
	i.begin()
	return i
}

// begin starts the process of the example.
func (i *incident) begin() {
	place, err := json.Marshal(i.place)
	if err != nil {
		i.t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(i.root, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		i.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.CommandContext(context.WithoutCancel(i.t.Context()), i.program)
	cmd.Env = append(os.Environ(), "AMENDS_EXAMPLE_ROLE=sync", "AMENDS_EXAMPLE_PLACE="+string(place), "TMPDIR="+i.root+"/tmp", "XDG_STATE_HOME="+i.root+"/state")
	cmd.Stdout, cmd.Stderr = log, log
	if i.leash, err = cmd.StdinPipe(); err != nil { // it ends when we do
		i.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		i.t.Fatal(err)
	}
	i.running = cmd
}

// stop ends it, as SIGTERM does.
func (i *incident) stop() {
	if i.running == nil {
		return
	}
	_ = i.leash.Close()
	_ = i.running.Wait() // that it was stopped is no error
	i.running = nil
}

// play plays a section. Something happens before each block of commands, and the last looks at what came of them.
func (i *incident) play(t *testing.T, body string, happens []func(*incident)) {
	t.Helper()
	i.t = t
	blocks := regexp.MustCompile("(?m)^```sh$").FindAllStringIndex(body, -1)
	for n, b := range blocks {
		from, to := b[0], len(body)
		if said := strings.TrimSpace(above(body[:b[0]])); !strings.HasPrefix(said, "```") {
			from = strings.LastIndex(body[:b[0]], said) // it says whether the output comes later
		}
		if n+1 < len(blocks) {
			to = blocks[n+1][0]
		}
		if n < len(happens) && happens[n] != nil {
			happens[n](i)
		}
		part := body[from:to]
		for word, is := range i.words {
			part = strings.ReplaceAll(part, word, is)
		}
		i.shell.play("runbook.md, "+t.Name(), part)
	}
	if len(happens) > len(blocks) { // what it has come to
		happens[len(blocks)](i)
	}
}

// sell sells orders, and says nothing of what becomes of them.
func (i *incident) sell(ids ...string) {
	for _, id := range ids {
		o := outside.Orders(outside.Config{Seed: seedOfTheRunbook, Orders: 1})[0]
		o.ID, o.Version, o.InvoiceID = id, 0, ""
		o.UpdatedAt, o.CreatedAt, o.PaidAt = time.Time{}, time.Now(), time.Now()
		i.world.Shop.Put(o)
	}
}

// until waits until a command prints something, whatever else it prints.
func (i *incident) until(command, pattern string) string {
	i.t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		out, _ := i.run(command)
		if m := regexp.MustCompile(pattern).FindStringSubmatch(out); m != nil {
			return m[len(m)-1]
		}
		if time.Since(began) > time.Minute {
			log, _ := os.ReadFile(filepath.Join(i.root, "log"))
			i.t.Fatalf("%s does not print %s; it prints\n%s\nthe log ends with\n%s", command, pattern, out, log[max(0, len(log)-1500):])
		}
	}
}

// stands waits until orders stand at something.
func (i *incident) stands(status string, ids ...string) {
	i.t.Helper()
	for _, id := range ids {
		i.until("amends show shop:order:"+id, `(?m)^status +`+status)
	}
}

// invoice is the id of an order's invoice in the books.
func (i *incident) invoice(order string) string {
	i.t.Helper()
	all := i.world.Books.Lookup("shop:order:" + order)
	if len(all) == 0 {
		i.t.Fatalf("order %s has no invoice", order)
	}
	return all[len(all)-1].ID
}

// live waits until orders have so many invoices that count.
func (i *incident) live(n int, orders ...string) {
	i.t.Helper()
	for _, id := range orders {
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			all := slices.DeleteFunc(i.world.Books.Lookup("shop:order:"+id), func(inv outside.Invoice) bool { return inv.State == outside.Void })
			if len(all) == n {
				break
			}
			if time.Since(began) > time.Minute {
				i.t.Fatalf("order %s has %d invoices, not %d: %+v", id, len(all), n, all)
			}
		}
	}
}

// ago has a job be planned until so much earlier, as if no process had run since.
func (i *incident) ago(job string, span time.Duration) {
	i.t.Helper()
	driver, earlier := "sqlite", "planned_until - 1000 * CAST(? AS INTEGER)"
	if strings.HasPrefix(i.ledger, "postgres") {
		driver, earlier = "postgres", "planned_until - CAST(? AS BIGINT) * INTERVAL '1 millisecond'"
	}
	db, err := sqlx.Open(driver, i.ledger)
	if err != nil {
		i.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(db.Rebind(`UPDATE amends_jobs SET planned_until = `+earlier+` WHERE name = ?`), span.Milliseconds(), job); err != nil {
		i.t.Fatal(err)
	}
}

// happens is how what a section is about comes about, before each of its blocks of commands.
func (i *incident) happens() map[string][]func(*incident) {
	const order = "shop:order:"
	batch := func(i *incident) {
		i.words["BATCH"] = i.until("amends list --saga amends-batch --newest --limit 1 -o ids", `(?m)^(batch:\S+)`)
	}
	ids := []string{"10481", "10482", "10483", "10484"}
	return map[string][]func(*incident){
		"Is all well?": {func(i *incident) {
			i.until("amends status", `Everything moves`)
			for _, o := range outside.Orders(outside.Config{Seed: seedOfTheRunbook, Orders: 4}) {
				i.stands("completed", o.ID)
			}
		}},
		"Find an order": {func(i *incident) {
			i.sell("10401")
			i.stands("completed", "10401")
			i.words["INVOICE"], i.words["TEXT"] = i.invoice("10401"), "refused"
		}},
		"A mail may have been sent": {func(i *incident) {
			i.mail.lost.Store(1)
			i.sell("10411")
			i.stands("review", "10411")
			i.words["MAIL"] = i.world.Mailbox.About(order + "10411")[0].ID
			i.mail.dropped.Store(1)
			i.sell("10412")
			i.stands("review", "10412")
		}, nil, func(i *incident) {
			i.stands("completed", "10411", "10412")
			if one, other := i.world.Mailbox.About(order+"10411"), i.world.Mailbox.About(order+"10412"); len(one) != 1 || len(other) != 1 {
				i.t.Errorf("there are %d letters about 10411, %d about 10412", len(one), len(other))
			}
		}},
		"One cause, many in review": {func(i *incident) {
			i.mail.answer.Store(http.StatusUnprocessableEntity)
			i.sell("10421", "10422", "10423", "10424")
			i.stands("review", "10421", "10422", "10423", "10424")
		}, func(i *incident) { i.mail.answer.Store(0) }, nil, batch, func(i *incident) {
			i.until("amends list --reason after-pivot", "no works match")
		}},
		"The books are down": {func(i *incident) {
			i.world.Outage.After(1)
			for n := range 24 { // so many that it is known at once
				i.sell(strconv.Itoa(10500 + n))
			}
			i.until("amends destination list", `(?m)^books +failing`)
		}, nil, func(i *incident) { i.world.Outage.End() }, nil, func(i *incident) {
			i.until("amends list --waits-for retry:books", "no works match")
		}},
		"Cancel orders": {func(i *incident) {
			i.typed("runbook.md", `amends pause --destination books --reason "they close"`)
			i.until("grep 'they close' "+filepath.Join(i.root, "log"), "they close") // it obeys
			i.sell("10441", "10442", "10443")
			for _, id := range []string{"10441", "10442", "10443"} {
				i.until("amends list --waits-for books", id)
			}
		}, batch, func(i *incident) {
			i.stands("compensated", "10441", "10442", "10443")
			i.live(0, "10441", "10442", "10443")
		}},
		"Bring back what was given up": {func(i *incident) {
			i.typed("runbook.md", `amends resume --destination books --reason "they are open"`)
			i.books.answer.Store(http.StatusUnprocessableEntity)
			i.sell("10451", "10452", "10453")
			i.stands("compensated", "10451", "10452", "10453")
		}, func(i *incident) { i.books.answer.Store(0) }, batch, func(i *incident) { i.live(1, "10451", "10452", "10453") }},
		"Undo what is completed": {func(i *incident) {
			i.sell("10461", "10462")
			i.stands("completed", "10461", "10462")
		}, func(i *incident) {
			i.stands("compensated", "10461")
			i.stands("completed", "10462")
			i.live(0, "10461")
			i.live(1, "10462")
		}},
		"A webhook came to nothing, or was forged": {func(i *incident) {
			i.sell("10471")
			i.stands("completed", "10471")
			i.words["DELIVERY"] = i.until("amends inbox list --object shop:order:10471", `(?m)^ *(\d+) `)
		}, nil, func(i *incident) {
			i.until("grep 'webhook refused' "+filepath.Join(i.root, "log"), "wrong_signature") // the forged ones
		}},
		"The books say something else": {func(i *incident) {
			i.sell(ids...)
			i.stands("completed", ids...)
			for _, id := range ids {
				inv := i.invoice(id)
				o, err := i.world.Shop.Order(id)
				if err == nil && id != "10483" {
					o.Lines = slices.Clone(o.Lines)
					o.Lines[0].Quantity++
					for _, other := range i.world.Books.Lookup(order + id) {
						_, err = i.world.Books.Update(other.ID, outside.Content{Memo: other.Memo, Lines: o.Lines}, 0)
					}
				} else if err == nil {
					_, err = i.world.Books.Delete(inv)
				}
				if err != nil {
					i.t.Fatal(err)
				}
			}
		}, nil, nil, func(i *incident) {
			i.live(1, ids...)
			for _, id := range ids {
				if out, _ := i.run("amends drift list --key " + order + id); !strings.Contains(out, "no differences") {
					i.t.Errorf("it is still found: %s", out)
				}
			}
		}},
		"Who did what": nil, "Did a customer get two?": nil, "Alerts": nil, "The clocks change": nil, "For an auditor": nil,
		"No process runs": {func(i *incident) { i.stop(); i.until("amends status", "no coordinator runs") }, func(i *incident) {
			i.begin()
			i.until("amends status", "Everything moves")
		}},
		"A job missed its runs": {func(i *incident) {
			i.stop()
			i.ago("orders-changed", 30*time.Hour)
			i.begin()
			i.until("amends reconcile runs orders-changed --result skipped", "longer ago")
		}},
	}
}
