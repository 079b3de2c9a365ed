package world

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/faults"
	"github.com/amends-dev/amends/internal/shopsim/mail"
	"github.com/amends-dev/amends/internal/shopsim/shop"
)

// opening is when the first order was paid. It is fixed, so that equal seeds
// give equal orders on any day.
var opening = time.Date(2026, time.January, 5, 8, 0, 0, 0, time.UTC)

// checkout is how long a customer takes to pay.
const checkout = 2 * time.Minute

var (
	firstNames = []string{"Ada", "Björn", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hana", "Ines", "Jonas", "Kofi", "Léa"}
	lastNames  = []string{"Adler", "Baptiste", "Costa", "Dvořák", "Eriksen", "Fontaine", "García", "Horváth", "Ito", "Jansen", "Kaya", "Lindqvist"}
	goods      = []shop.Line{
		{SKU: "tea-100", Description: "Green tea, 100 g", UnitCents: 890},
		{SKU: "pot-1", Description: "Teapot, cast iron", UnitCents: 5400},
		{SKU: "cup-2", Description: "Two cups, porcelain", UnitCents: 2450},
		{SKU: "tin-3", Description: "Tea tin, hand painted", UnitCents: 1799},
		{SKU: "hon-250", Description: "Heather honey, 250 g", UnitCents: 725},
		{SKU: "whisk", Description: "Bamboo whisk", UnitCents: 1333},
	}
)

// Orders makes the paid orders of a world. They depend on Seed, Orders and
// Bounces only.
func Orders(c Config) []shop.Order {
	r := rand.New(rand.NewPCG(c.Seed, 0))
	customers := customers(r, max(1, c.Orders*2/3), c.Bounces)
	orders := make([]shop.Order, c.Orders)
	for i := range orders {
		paid := opening.Add(time.Duration(i) * 97 * time.Second)
		o := shop.Order{
			ID: strconv.Itoa(10001 + i), Status: shop.Paid, Version: 1, Currency: "EUR",
			Customer: customers[r.IntN(len(customers))], CreatedAt: paid.Add(-checkout), PaidAt: paid, UpdatedAt: paid,
		}
		for range 1 + r.IntN(4) {
			line := goods[r.IntN(len(goods))]
			line.Quantity = int64(1 + r.IntN(3))
			o.Lines = append(o.Lines, line)
		}
		o.TotalCents = shop.Total(o.Lines)
		orders[i] = o
	}
	return orders
}

func customers(r *rand.Rand, n int, bounces float64) []shop.Customer {
	customers := make([]shop.Customer, n)
	for i := range customers {
		domain := "post.example"
		if r.Float64() < bounces {
			domain = mail.BounceDomain
		}
		customers[i] = shop.Customer{
			ID:    fmt.Sprintf("%04d", i+1),
			Name:  firstNames[r.IntN(len(firstNames))] + " " + lastNames[r.IntN(len(lastNames))],
			Email: fmt.Sprintf("customer%04d@%s", i+1, domain),
		}
	}
	return customers
}

// atBooks names a request to the books by the order's reference and, for an
// update, by the memo, so that each gets faults of its own; and any other
// request by its address. The books number invoices as they come, so their
// numbers are not the same in two equal worlds.
func (w *World) atBooks(r *http.Request, body []byte) string {
	rest, ok := strings.CutPrefix(r.URL.Path, "/invoices")
	if !ok || rest == "" && r.Method == http.MethodGet {
		return faults.ByURL(r, body)
	}
	var d books.Draft
	_ = json.Unmarshal(body, &d) // the books will refuse what is no draft
	id, verb, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	if id != "" {
		inv, err := w.books.Invoice(r.Context(), id)
		if err != nil {
			return faults.ByURL(r, body) // the books will say so, too
		}
		d.Reference = inv.Reference
	}
	name := []string{r.Method, "/invoices", d.Reference}
	if r.Method == http.MethodPut {
		name = append(name, d.Memo)
	}
	if verb != "" {
		name = append(name, verb)
	}
	return strings.Join(name, " ")
}
