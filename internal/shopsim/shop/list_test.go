package shop_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/shop"
)

// noon is when the tests' shop opens.
var noon = time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)

// add adds a paid order that was created and changed at these times.
func (s *testShop) add(t *testing.T, id string, created, changed time.Time) {
	t.Helper()
	err := s.store.Add(t.Context(), shop.Order{ID: id, Status: shop.Paid, CreatedAt: created, UpdatedAt: changed})
	if err != nil {
		t.Fatal(err)
	}
}

// page asks for one page. The query is in pairs.
func (s *testShop) page(t *testing.T, query ...string) (p shop.Page) {
	t.Helper()
	q := url.Values{}
	for i := 0; i < len(query); i += 2 {
		q.Set(query[i], query[i+1])
	}
	if status := s.do(t, "GET", "/orders?"+q.Encode(), nil, &p); status != 200 {
		t.Fatalf("GET /orders?%s: %d", q.Encode(), status)
	}
	return p
}

// ids are the ids of a page's orders.
func ids(p shop.Page) string {
	var all []string
	for _, o := range p.Orders {
		all = append(all, o.ID)
	}
	return strings.Join(all, " ")
}

// walk goes through all pages and returns their ids, page by page, and the last cursor.
func (s *testShop) walk(t *testing.T, query ...string) (pages, next string) {
	t.Helper()
	for {
		p := s.page(t, append(query, "after", next)...)
		if len(p.Orders) == 0 {
			if p.Next != next {
				t.Errorf("an empty page has the cursor %q, want the one it was asked with, %q", p.Next, next)
			}
			return pages, next
		}
		pages += ids(p) + "|"
		next = p.Next
	}
}

// Changes are listed by (updatedAt, id) from an inclusive bound. Orders that
// changed in one second are listed once each, also when a page ends between
// them, and those of a fraction of a second are found from that fraction on.
func TestChangedSince(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "shop.db"))
	for _, o := range []struct {
		id      string
		changed time.Duration
	}{{"5", 0}, {"4", 2 * time.Second}, {"3", 1900 * time.Millisecond}, {"2", time.Second}, {"1", 1100 * time.Millisecond}, {"6", -time.Second}} {
		s.add(t, o.id, noon, noon.Add(o.changed))
	}
	since := func(at time.Duration) string { return noon.Add(at).Format(time.RFC3339Nano) }
	for _, c := range []struct {
		at   time.Duration
		want string
	}{
		{-time.Hour, "6 5|1 2|3 4|"},
		{0, "5 1|2 3|4|"},
		{time.Second, "1 2|3 4|"},
		{1900 * time.Millisecond, "1 2|3 4|"},
		{2 * time.Second, "4|"},
		{3 * time.Second, ""},
	} {
		if got, _ := s.walk(t, "changedSince", since(c.at), "limit", "2"); got != c.want {
			t.Errorf("since %v: %s, want %s", c.at, got, c.want)
		}
	}
}

// The shop's times are whole seconds, in what it answers and in what it tells.
func TestWholeSeconds(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "shop.db"))
	s.add(t, "1", noon, noon.Add(1900*time.Millisecond))
	s.now = noon.Add(3500 * time.Millisecond)
	s.do(t, "POST", "/orders/1/cancel", nil, nil)
	var o shop.Order
	if s.do(t, "GET", "/orders/1", nil, &o); !o.UpdatedAt.Equal(noon.Add(3 * time.Second)) {
		t.Errorf("updatedAt is %v", o.UpdatedAt)
	}
	told, err := s.store.Outbox(t.Context(), 0, 10)
	if err != nil || len(told) != 2 {
		t.Fatalf("told %v, %v", told, err)
	}
	for i, want := range []time.Duration{time.Second, 3 * time.Second} {
		var e shop.Event
		if err := json.Unmarshal(told[i].Body, &e); err != nil || !e.Timestamp.Equal(noon.Add(want)) || !e.Data.UpdatedAt.Equal(e.Timestamp) {
			t.Errorf("%s was told with %v and %v, %v", e.Type, e.Timestamp, e.Data.UpdatedAt, err)
		}
	}
}

// An order that changes while somebody pages comes again, behind all others,
// and the cursor at the end shows what changes later.
func TestChangeWhilePaging(t *testing.T) {
	t.Parallel()
	s := setup(t, 3)
	query := []string{"changedSince", noon.Add(-time.Hour).Format(time.RFC3339), "limit", "2"}
	first := s.page(t, query...)
	s.do(t, "PUT", "/orders/1/synced", shop.Mark{InvoiceID: "inv_1"}, nil)
	second := s.page(t, append(query, "after", first.Next)...)
	if ids(first) != "1 2" || ids(second) != "3 1" {
		t.Fatalf("pages %s and %s", ids(first), ids(second))
	}
	s.now = s.now.Add(time.Second)
	s.do(t, "POST", "/orders/2/cancel", nil, nil)
	if last := s.page(t, append(query, "after", second.Next)...); ids(last) != "2" {
		t.Errorf("later came %q, want order 2", ids(last))
	}
}

// Created ranges are half open, so that neighbours share no order and miss none,
// and tell how many orders they have on all of their pages.
func TestCreatedRanges(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "shop.db"))
	for day := range 3 {
		for n := range 3 {
			s.add(t, fmt.Sprint(day, "-", n), noon.Add(time.Duration(day)*24*time.Hour+time.Duration(n)*12*time.Hour), noon)
		}
	}
	at := func(half int) string { return noon.Add(time.Duration(half) * 12 * time.Hour).Format(time.RFC3339) }
	for _, c := range []struct {
		from, to string
		total    int
		want     string
	}{
		{at(0), at(2), 2, "0-0 0-1|"},
		{at(2), at(4), 3, "0-2 1-0|1-1|"},
		{at(4), at(7), 4, "1-2 2-0|2-1 2-2|"},
		{at(7), at(9), 0, ""},
		{"", at(2), 2, "0-0 0-1|"},
		{at(2), "", 7, "0-2 1-0|1-1 1-2|2-0 2-1|2-2|"},
		{noon.Add(time.Nanosecond).Format(time.RFC3339Nano), noon.Add(12*time.Hour + time.Nanosecond).Format(time.RFC3339Nano), 1, "0-1|"},
	} {
		query := []string{"createdFrom", c.from, "createdTo", c.to, "limit", "2"}
		pages, next := s.walk(t, query...)
		if pages != c.want {
			t.Errorf("from %s to %s: %s, want %s", c.from, c.to, pages, c.want)
		}
		for _, after := range []string{"", next} {
			if p := s.page(t, append(query, "after", after)...); p.Total == nil || *p.Total != c.total {
				t.Errorf("from %s to %s after %q the total is %v, want %d", c.from, c.to, after, p.Total, c.total)
			}
		}
	}
	if p := s.page(t); p.Total != nil {
		t.Errorf("a list without a range tells a total of %d", *p.Total)
	}
}

// A deleted order is gone for everybody who asks: by its id, in lists and in
// totals. It cannot be changed or deleted again. Its webhook tells, as its next
// version, and the shop's own file still has it.
func TestDelete(t *testing.T) {
	t.Parallel()
	s := setup(t, 3)
	s.do(t, "PUT", "/orders/2/synced", shop.Mark{InvoiceID: "inv_2"}, nil)
	var told []shop.Webhook
	s.store.Changed = func(w shop.Webhook) { told = append(told, w) }
	if status := s.do(t, "DELETE", "/orders/2", nil, nil); status != 204 {
		t.Fatalf("status %d", status)
	}
	for _, ask := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"DELETE", "/synced"}, {"POST", "/cancel"}} {
		s.refused(t, ask[0], "/orders/2"+ask[1], nil, 404, shop.CodeUnknownOrder)
	}
	s.refused(t, "PUT", "/orders/2/synced", shop.Mark{InvoiceID: "inv_2"}, 404, shop.CodeUnknownOrder)
	early := noon.Add(-24 * time.Hour).Format(time.RFC3339)
	for _, query := range [][]string{{}, {"changedSince", early}, {"createdTo", noon.Format(time.RFC3339)}} {
		p := s.page(t, query...)
		if ids(p) != "1 3" || p.Total != nil && *p.Total != 2 {
			t.Errorf("%v: orders %s, total %v", query, ids(p), p.Total)
		}
	}
	if len(told) != 1 || told[0].Topic != shop.TopicDeleted || told[0].Version != 3 || told[0].Order != "2" {
		t.Errorf("told %+v", told)
	}
	if tally, err := s.store.Tally(t.Context()); err != nil || tally != (shop.Tally{Paid: 2}) {
		t.Errorf("tally %+v, %v", tally, err)
	}
	all, err := s.store.Orders(t.Context())
	if err != nil || len(all) != 3 || !all[1].Deleted || all[1].InvoiceID != "inv_2" || all[0].Deleted {
		t.Errorf("the file has %+v, %v", all, err)
	}
}

// What is no query of this shop is refused, a cursor of another list too.
func TestBadQueries(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	at := noon.Add(-24 * time.Hour).Format(time.RFC3339)
	added, changed := s.page(t).Next, s.page(t, "changedSince", at).Next
	if added == "" || changed == "" {
		t.Fatalf("cursors %q and %q", added, changed)
	}
	for _, query := range []string{
		"changedSince=yesterday", "createdFrom=2026-02-01", "createdTo=0", "limit=x",
		"after=" + changed, "changedSince=" + at + "&after=" + added, "changedSince=" + at + "&after=!",
	} {
		s.refused(t, "GET", "/orders?"+query, nil, 400, "bad_request")
	}
}
