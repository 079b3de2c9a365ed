// Command outside is what the tutorials talk to: a shop, books, a mail server, a card company and a
// carrier at 127.0.0.1:7001, with the faults of real ones. It keeps everything in memory.
//
//	PUT    /orders/42?cents=2000     a customer orders, or edits the order
//	DELETE /orders/42                the customer cancels it
//	GET    /orders, /orders/42       what the shop knows
//	POST   /invoices, /mails         makes one; no idempotency key is known here
//	GET    /invoices?order=42        looks invoices up, without those that are void; mails alike
//	PUT    /invoices/inv_1           edits one
//	DELETE /invoices/inv_1           makes one void
//	POST   /lose/invoices            the next POST /invoices does its work, and its answer is lost; mails alike
//	POST   /drop/invoices            the next POST /invoices is lost itself; mails alike
//	POST   /hang/invoices            the next POST /invoices does its work, and its answer never comes; mails alike
//	GET    /audit                    what each order has led to
//	DELETE /                         forgets everything
//
//	POST   /charges                  charges a card, once for an Idempotency-Key
//	DELETE /charges?key=KEY          refunds the charge under that key, if there is one
//	PUT    /deliveries/42            orders a delivery; one of more than 100000 cents is refused
//
//	PUT    /webhooks?to=URL&secret=S  from now on the shop tells URL of each change
//	POST   /orders/42/webhooks/1      sends the webhook of version 1 again
//
// A webhook is signed: X-Shop-Signature is t=SECONDS,v1=HEX, the HMAC-SHA256 of "SECONDS.BODY".
package main

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

type order struct {
	ID        string `json:"id"`
	Cents     int    `json:"cents"`
	Version   int    `json:"version"` // grows by one with each change
	Cancelled bool   `json:"cancelled"`
}

// thing is an invoice, a mail, a charge or a delivery.
type thing struct {
	ID    string `json:"id"`
	Order string `json:"order"`
	Cents int    `json:"cents"`
	Void  bool   `json:"void"`
	key   string // of the request that made it
}

type world struct {
	mu     sync.Mutex
	orders map[string]*order
	things map[string][]*thing // invoices, mails, charges, deliveries
	lose   map[string]string   // lose, drop or hang: what happens to the next one of a kind
	sent   map[string][]byte   // webhooks, by order and version
	to     string              // where they go
	secret string
}

func main() {
	server := &http.Server{Addr: "127.0.0.1:7001", Handler: newWorld().handler(), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func newWorld() *world {
	w := &world{}
	w.forget(nil)
	return w
}

func (w *world) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(*http.Request) (any, int){
		"GET /orders": w.list, "GET /orders/{id}": w.show, "PUT /orders/{id}": w.change, "DELETE /orders/{id}": w.change,
		"POST /{kind}": w.make, "GET /{kind}": w.find, "PUT /invoices/{id}": w.edit, "DELETE /invoices/{id}": w.edit,
		"DELETE /{$}": w.forget, "DELETE /charges": w.refund, "PUT /deliveries/{id}": w.deliver,
		"POST /lose/{kind}": w.fail, "POST /drop/{kind}": w.fail, "POST /hang/{kind}": w.fail, "PUT /webhooks": w.subscribe, "POST /orders/{id}/webhooks/{version}": w.resend,
	} {
		mux.HandleFunc(pattern, func(rw http.ResponseWriter, r *http.Request) {
			body, status := w.served(serve, r)
			switch status {
			case hangs:
				<-r.Context().Done()
				fallthrough
			case cut:
				panic(http.ErrAbortHandler) // the client does not hear
			}
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(status)
			_, _ = rw.Write(append(body, '\n'))
		})
	}
	mux.HandleFunc("GET /audit", w.audit)
	return mux
}

// What becomes of an answer that does not come.
const cut, hangs = 0, -1

func (w *world) served(serve func(*http.Request) (any, int), r *http.Request) ([]byte, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v, status := serve(r)
	body, err := json.Marshal(v)
	if err != nil {
		log.Print(err)
	}
	return body, status
}

func (w *world) list(*http.Request) (any, int) { return w.all(), http.StatusOK }

// all are the orders, by their numbers.
func (w *world) all() []*order {
	all := slices.Collect(maps.Values(w.orders))
	slices.SortFunc(all, func(a, b *order) int { return cmp.Compare(number(a.ID), number(b.ID)) })
	return all
}

func number(id string) int { n, _ := strconv.Atoi(id); return n }

func (w *world) show(r *http.Request) (any, int) {
	if o := w.orders[r.PathValue("id")]; o != nil {
		return o, http.StatusOK
	}
	return "no such order", http.StatusNotFound
}

// change is a customer who orders, edits or cancels.
func (w *world) change(r *http.Request) (any, int) {
	o := w.orders[r.PathValue("id")]
	if o == nil {
		o = &order{ID: r.PathValue("id")}
		w.orders[o.ID] = o
	}
	o.Version++
	o.Cancelled = r.Method == http.MethodDelete
	if !o.Cancelled {
		o.Cents = number(r.FormValue("cents"))
	}
	version := fmt.Sprint(o.ID, "-", o.Version)
	body, err := json.Marshal(map[string]any{"event": "order.changed", "delivery": version, "order": o})
	if err != nil {
		return err.Error(), http.StatusInternalServerError
	}
	w.sent[version] = body
	w.tell(version)
	return o, http.StatusOK
}

func (w *world) subscribe(r *http.Request) (any, int) {
	w.to, w.secret = r.FormValue("to"), r.FormValue("secret")
	return "webhooks go to " + w.to, http.StatusOK
}

func (w *world) resend(r *http.Request) (any, int) {
	version := r.PathValue("id") + "-" + r.PathValue("version")
	if w.sent[version] == nil {
		return "there is no such version", http.StatusNotFound
	}
	w.tell(version)
	return "sent again", http.StatusOK
}

// tell sends a webhook, once: who is not there does not hear of it.
func (w *world) tell(version string) {
	if w.to == "" {
		return
	}
	body, seconds := w.sent[version], fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, []byte(w.secret))
	fmt.Fprintf(mac, "%s.%s", seconds, body)
	r, err := http.NewRequest(http.MethodPost, w.to, bytes.NewReader(body))
	if err != nil {
		log.Print(err)
		return
	}
	r.Header.Set("X-Shop-Signature", fmt.Sprintf("t=%s,v1=%x", seconds, mac.Sum(nil)))
	go func() {
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Print("webhook not delivered: ", err)
			return
		}
		_ = answer.Body.Close()
	}()
}

func (w *world) make(r *http.Request) (any, int) {
	kind := r.PathValue("kind")
	prefix := map[string]string{"invoices": "inv", "mails": "mail", "charges": "ch"}[kind]
	if prefix == "" {
		return "there is no such thing here", http.StatusNotFound
	}
	t := &thing{key: r.Header.Get("Idempotency-Key")}
	for _, made := range w.things[kind] {
		if kind == "charges" && made.key == t.key {
			return made, http.StatusOK
		}
	}
	if err := json.NewDecoder(r.Body).Decode(t); err != nil {
		return err.Error(), http.StatusBadRequest
	}
	fault := w.lose[kind]
	delete(w.lose, kind)
	if fault == "drop" {
		return nil, cut
	}
	t.ID = fmt.Sprintf("%s_%d", prefix, len(w.things[kind])+1)
	w.things[kind] = append(w.things[kind], t)
	switch fault {
	case "lose":
		return nil, cut
	case "hang":
		return nil, hangs
	}
	return t, http.StatusCreated
}

func (w *world) find(r *http.Request) (any, int) {
	found := []*thing{}
	for _, t := range w.things[r.PathValue("kind")] {
		if which := r.FormValue("order"); !t.Void && (which == "" || which == t.Order) {
			found = append(found, t)
		}
	}
	return found, http.StatusOK
}

// edit changes an invoice, or makes it void.
func (w *world) edit(r *http.Request) (any, int) {
	for _, t := range w.things["invoices"] {
		if t.ID != r.PathValue("id") {
			continue
		}
		if t.Void = r.Method == http.MethodDelete; !t.Void {
			if err := json.NewDecoder(r.Body).Decode(t); err != nil {
				return err.Error(), http.StatusBadRequest
			}
		}
		return t, http.StatusOK
	}
	return "no such invoice", http.StatusNotFound
}

func (w *world) forget(*http.Request) (any, int) {
	w.orders, w.things, w.lose, w.sent = map[string]*order{}, map[string][]*thing{}, map[string]string{}, map[string][]byte{}
	return "nothing is left", http.StatusOK
}

// refund is asked for by the key of the charge: who asks may not know whether there was one.
func (w *world) refund(r *http.Request) (any, int) {
	for _, t := range w.things["charges"] {
		if t.key == r.FormValue("key") {
			t.Void = true
		}
	}
	return "nothing is charged under that key", http.StatusOK
}

func (w *world) deliver(r *http.Request) (any, int) {
	t := &thing{}
	if err := json.NewDecoder(r.Body).Decode(t); err != nil {
		return err.Error(), http.StatusBadRequest
	}
	if t.Cents > 100_000 {
		return "too much for one delivery", http.StatusUnprocessableEntity
	}
	t.ID = "del_" + r.PathValue("id")
	w.things["deliveries"] = append(slices.DeleteFunc(w.things["deliveries"], func(d *thing) bool { return d.ID == t.ID }), t)
	return t, http.StatusOK
}

func (w *world) fail(r *http.Request) (any, int) {
	what, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	w.lose[r.PathValue("kind")] = what
	return "the next one fails", http.StatusOK
}

// audit says of each order what it has led to.
func (w *world) audit(rw http.ResponseWriter, _ *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.all() {
		var invoices, mails []string
		for _, t := range w.things["invoices"] {
			if t.Order == o.ID && !t.Void {
				invoices = append(invoices, fmt.Sprintf("%s of %d", t.ID, t.Cents))
			}
		}
		for _, t := range w.things["mails"] {
			if t.Order == o.ID {
				mails = append(mails, t.ID)
			}
		}
		what := fmt.Sprintf("order %s of %d", o.ID, o.Cents)
		if o.Cancelled {
			what = fmt.Sprintf("order %s, cancelled", o.ID)
		}
		fmt.Fprintf(rw, "%s: %s\n", what, strings.Join(append(invoices, mails...), ", "))
		if len(invoices) > 1 || len(mails) > 1 {
			fmt.Fprintln(rw, "  TOO MANY")
		}
	}
}
