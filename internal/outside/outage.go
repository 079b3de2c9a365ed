package outside

import (
	"net/http"
	"sync/atomic"
)

// Outage is a server that is out of order for a while: whatever it is asked, it cuts the connection,
// says that it is unavailable, or lets a gateway say so, in turns. Nothing takes effect. Its zero
// value is a server in order.
type Outage struct {
	on    atomic.Bool
	after atomic.Int64 // it begins with this many more changes; none: it does not
	asks  atomic.Int64
}

// After begins the outage with the n-th request from now on that is to change something: however fast
// they come, one behind it meets the outage.
func (o *Outage) After(n int) { o.after.Store(int64(n)) }

// On reports whether the server is out of order.
func (o *Outage) On() bool { return o.on.Load() }

// End puts the server in order again.
func (o *Outage) End() { o.on.Store(false) }

// Asked returns how many requests came while the server was out of order.
func (o *Outage) Asked() int { return int(o.asks.Load()) }

// Before puts the outage in front of a server.
func (o *Outage) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && o.after.Add(-1) == 0 {
			o.on.Store(true)
		}
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
