package faults

import (
	"net/http"
	"sync/atomic"
)

// Outage is a server that is out of order for a while: whatever it is asked, it cuts the connection, says that it is
// unavailable, or lets a gateway say so, in turns. Nothing takes effect. Its zero value is a server in order.
type Outage struct {
	on   atomic.Bool
	asks atomic.Int64
}

// Set begins the outage, or ends it.
func (o *Outage) Set(on bool) { o.on.Store(on) }

// Asked returns how many requests came while the server was out of order.
func (o *Outage) Asked() int { return int(o.asks.Load()) }

// HTTP puts the outage in front of a server.
func (o *Outage) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.on.Load() {
			next.ServeHTTP(w, r)
			return
		}
		switch o.asks.Add(1) % 3 {
		case 0:
			badGateway(w)
		case 1:
			reset(w)
		default:
			http.Error(w, "the server is out of order", http.StatusServiceUnavailable)
		}
	})
}
