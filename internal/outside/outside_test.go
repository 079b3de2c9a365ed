package outside_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/outside"
)

// The worlds that a seed means are part of what the README shows: these arrivals meet these faults on every
// machine, and a higher rate adds faults and changes none.
func TestPlanIsFixed(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]string{
		0:   ". . . . . . . . . . . .",
		0.3: "cut-after . . . . . error-after cut-after . . . too-many",
		1:   "cut-after cut-after cut-before error-before slow cut-after error-after cut-after too-many error-after cut-before too-many",
	} {
		var got []string
		for i := range 12 {
			f := outside.NewFaults(7, rate, outside.Timing{})
			served := f.Before(outside.Ordinary, outside.ByURL, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			func() {
				defer func() { _ = recover() }() // a cut connection
				served.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, fmt.Sprintf("/%d", i), nil))
			}()
			got = append(got, ".")
			for met := range f.Tally() {
				got[i] = string(met)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("at rate %v\n%s, want\n%s", rate, strings.Join(got, " "), want)
		}
	}
	if o := outside.Orders(outside.Config{Seed: 5, Orders: 60})[59]; o.ID != "10060" || o.TotalCents != 3999 || o.Customer.Name != "Farid Adler" {
		t.Errorf("the last order of seed 5 is %+v", o)
	}
}

// Each fault, as a real client meets it: what it is told, and whether it happened. After Patience arrivals
// of a key there is peace.
func TestFaults(t *testing.T) {
	t.Parallel()
	timing := outside.Timing{Slow: time.Millisecond, Silent: time.Minute, Late: time.Hour, Retry: time.Second}
	for fault, want := range map[outside.Fault]string{
		outside.TooMany: "429 after 1, 0 made", outside.Busy: "429 after , 0 made", outside.ErrorBefore: "502 after , 0 made",
		outside.CutBefore: "cut, 0 made", outside.Slow: "200 after , 1 made", outside.ErrorAfter: "502 after , 1 made",
		outside.CutAfter: "cut, 1 made", outside.Silent: "silence, 1 made",
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			books, faults := outside.NewBooks(), outside.NewFaults(1, 1, timing)
			server := httptest.NewServer(faults.Before(outside.Menu{fault}, outside.ByURL, books.Handler()))
			t.Cleanup(server.Close)
			t.Cleanup(faults.Close)
			post := func(patient bool) string {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if before := len(books.Invoices()); !patient && fault == outside.Silent { // it has happened by the time the caller gives up
					go func() {
						for len(books.Invoices()) == before && ctx.Err() == nil {
							time.Sleep(time.Millisecond) //nolint:forbidigo // another goroutine
						}
						cancel()
					}()
				}
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/invoices", strings.NewReader(`{"reference":"r"}`))
				if err != nil {
					t.Fatal(err)
				}
				answer, err := http.DefaultClient.Do(r)
				switch {
				case errors.Is(err, context.Canceled):
					return "silence"
				case err != nil:
					return "cut"
				}
				defer answer.Body.Close()
				return fmt.Sprintf("%d after %s", answer.StatusCode, answer.Header.Get("Retry-After"))
			}
			if got := fmt.Sprintf("%s, %d made", post(false), len(books.Invoices())); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			for range outside.Patience {
				post(false)
			}
			if got := post(true); got != "200 after " {
				t.Errorf("after so many arrivals it is %s", got)
			}
		})
	}
}

// What would take effect after everything has settled is lost, however late a busy machine lets it arrive.
func TestWhatComesTooLateIsLost(t *testing.T) {
	t.Parallel()
	books, faults := outside.NewBooks(), outside.NewFaults(1, 0, outside.DefaultTiming)
	server := httptest.NewServer(faults.Before(outside.Ordinary, outside.ByURL, books.Handler()))
	t.Cleanup(server.Close)
	for _, c := range []struct {
		ago  time.Duration
		made int
	}{{0, 1}, {time.Minute, 1}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/invoices", strings.NewReader(`{"reference":"r"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(outside.GivenUp, fmt.Sprint(time.Now().Add(-c.ago).UnixMilli()))
		if answer, err := http.DefaultClient.Do(r); err == nil {
			answer.Body.Close()
		}
		if n := len(books.Invoices()); n != c.made {
			t.Errorf("given up %s ago, %d are made", c.ago, n)
		}
	}
}

// Lookups see an invoice late, and an update late, and until then what they showed before; they never go
// back, and asking by the id is never behind. A void invoice is found, and cannot be updated.
func TestLookupsAreLate(t *testing.T) {
	t.Parallel()
	b := outside.NewBooks()
	says := func(want string) {
		t.Helper()
		var got []string
		for _, inv := range b.Lookup("r") {
			got = append(got, fmt.Sprint(inv.ID, " ", inv.Memo, " ", inv.State))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("lookups show %v, want %s", got, want)
		}
	}
	add := func(memo string, hidden time.Duration) string {
		inv, err := b.Add(outside.Draft{Reference: "r", Content: outside.Content{Memo: memo}}, hidden)
		if err != nil {
			t.Fatal(err)
		}
		return inv.ID
	}
	first := add("one", 0)
	add("hidden", time.Hour)
	says("inv_0001 one live")
	if inv, err := b.Update(first, outside.Content{Memo: "two"}, time.Hour); err != nil || inv.Memo != "two" {
		t.Errorf("%+v, %v", inv, err)
	}
	says("inv_0001 one live")
	if inv, err := b.Invoice(first); err != nil || inv.Memo != "two" {
		t.Errorf("by its id it is %+v, %v", inv, err)
	}
	if _, err := b.Update(first, outside.Content{Memo: "three"}, 0); err != nil {
		t.Error(err)
	}
	says("inv_0001 one live")
	if _, err := b.Void(first); err != nil {
		t.Error(err)
	}
	says("inv_0001 one void")
	if _, err := b.Update(first, outside.Content{}, 0); !outside.Refused(err, outside.CodeInvoiceVoid) {
		t.Errorf("a void invoice was updated: %v", err)
	}
}

// Lists go on behind a cursor, an order that changes meanwhile comes again at the end, and a created range
// tells its size.
func TestListsOfTheShop(t *testing.T) {
	t.Parallel()
	shop := outside.NewShop()
	begin := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	for i := range 5 {
		at := begin.Add(time.Duration(i/2) * time.Second)
		shop.Add(outside.Order{ID: fmt.Sprint(i), Status: outside.Paid, CreatedAt: at, UpdatedAt: at})
	}
	ask := func(query string) (ids, next, total string) {
		t.Helper()
		answer := httptest.NewRecorder()
		shop.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/orders?"+query, nil))
		var p outside.Page
		if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil || answer.Code != http.StatusOK {
			t.Fatalf("%s: %v, %s", query, err, answer.Body)
		}
		for _, o := range p.Orders {
			ids += o.ID
		}
		if p.Total != nil {
			total = fmt.Sprint(*p.Total)
		}
		return ids, p.Next, total
	}
	ids, next, _ := ask("changedSince=2026-01-05T08:00:00.5Z&limit=3")
	if ids != "012" {
		t.Errorf("first page %s", ids)
	}
	if _, err := shop.Mark("1", "inv_1"); err != nil {
		t.Fatal(err)
	}
	if ids, next, _ = ask("changedSince=2026-01-05T08:00:00Z&after=" + next); ids != "341" {
		t.Errorf("second page %s", ids)
	}
	if ids, again, _ := ask("changedSince=2026-01-05T08:00:00Z&after=" + next); ids != "" || again != next {
		t.Errorf("behind the end %s", ids)
	}
	if err := shop.Delete("4"); err != nil {
		t.Fatal(err)
	}
	if ids, _, total := ask("createdFrom=2026-01-05T08:00:01Z&limit=1"); ids != "2" || total != "2" {
		t.Errorf("of a range %s of %s", ids, total)
	}
	if ids, _, _ := ask("synced=no"); ids != "023" {
		t.Errorf("without a mark %s", ids)
	}
}

// Every change is told, as the shop left it, whatever happens on the way: late, out of order, more than
// once, and nothing that is forged is acknowledged by a receiver that looks.
func TestEverythingIsTold(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	heard, forged, down := map[string]string{}, 0, 0
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e outside.Event
		mu.Lock()
		defer mu.Unlock()
		switch err := json.Unmarshal(body, &e); {
		case err != nil || e.Data.Version > 1000 || strings.HasSuffix(r.Header.Get("webhook-id"), "_new"):
			forged++
			w.WriteHeader(http.StatusUnauthorized)
		case len(heard) == 5 && down < 3:
			down++
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			heard[fmt.Sprint(e.Data.ID, " ", e.Data.Version)] = string(e.Type)
		}
	}))
	t.Cleanup(door.Close)
	w := outside.Start(outside.Config{Seed: 3, Orders: 30, People: outside.People{Pace: 20 * time.Millisecond, Edits: 1, LateCancels: 0.5}, Hooks: outside.Hooks{
		Receivers: []string{door.URL}, Secret: "whsec_YS1zaG9wLW9uLXRoaXMtbWFjaGluZQ==", Drops: 0.5, Duplicates: 0.5, Forgeries: 0.5,
	}})
	t.Cleanup(w.Close)
	for _, o := range w.Shop.Orders() {
		if _, err := w.Shop.Mark(o.ID, "inv_"+o.ID); err != nil {
			t.Fatal(err)
		}
	}
	for quiet := false; !quiet; {
		var err error
		if quiet, err = w.Quiet(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	for _, hook := range w.Shop.Webhooks() {
		if got := heard[fmt.Sprint(hook.Order, " ", hook.Version)]; got != string(hook.Topic) {
			t.Errorf("%s was heard as %q, want %s", hook.ID(), got, hook.Topic)
		}
	}
	tally := w.Webhooks()
	if tally.Made != len(heard) || tally.Acknowledged != tally.Made || tally.Copies == 0 || tally.Dropped == 0 || forged == 0 || tally.Lost > 0 {
		t.Errorf("%+v, %d forged", tally, forged)
	}
	if c := w.Changes(); c.Edits < 30 || c.LateCancels == 0 {
		t.Errorf("%+v", c)
	}
}
