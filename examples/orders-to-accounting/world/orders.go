package world

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/examples/orders-to-accounting/books"
	"github.com/amends-dev/amends/examples/orders-to-accounting/faults"
	"github.com/amends-dev/amends/examples/orders-to-accounting/mail"
	"github.com/amends-dev/amends/examples/orders-to-accounting/shop"
)

// opening is when the first order was paid. It is fixed, so that equal seeds
// give equal orders on any day.
var opening = time.Date(2026, time.January, 5, 8, 0, 0, 0, time.UTC)

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
			Customer: customers[r.IntN(len(customers))], PaidAt: paid, UpdatedAt: paid,
		}
		for range 1 + r.IntN(4) {
			line := goods[r.IntN(len(goods))]
			line.Quantity = int64(1 + r.IntN(3))
			o.Lines = append(o.Lines, line)
			o.TotalCents += line.Quantity * line.UnitCents
		}
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

// Cancelled reports whether the world cancels this order once it is invoiced.
func (c Config) Cancelled(order string) bool {
	return faults.Draw(c.Seed, "cancel/"+order) < c.Cancels
}

// cancelMeanwhile is the customer who changes their mind at the worst moment.
func (w *World) cancelMeanwhile(ctx context.Context, inv books.Invoice) {
	id, ok := strings.CutPrefix(inv.Reference, shop.Order{}.Ref())
	if !ok || !w.config.Cancelled(id) {
		return
	}
	// A refusal means that the order is marked by now: the customer is late.
	_, _ = w.shop.Cancel(ctx, id)
}

// byReference names a request for a new invoice by the reference it is for,
// and any other by its address.
func byReference(r *http.Request, body []byte) string {
	if r.Method != http.MethodPost || r.URL.Path != "/invoices" {
		return faults.ByURL(r, body)
	}
	var d books.Draft
	_ = json.Unmarshal(body, &d) // the books will refuse what is no draft
	return "POST /invoices " + d.Reference
}
