// Package serving is what the command hands to the console, so that neither imports the other.
package serving

import (
	"net"
	"net/netip"

	"github.com/amends-dev/amends/store"
)

// Console is what "amends serve" serves, and to whom.
type Console struct {
	DB       store.DB
	Listener net.Listener
	Path     string
	Hosts    []string
	Tokens   string // the file; "": only Own signs in
	Own      string // a person who is given a token of this process; "": none is
	User     string // the header in which a proxy says who asks; "": none does
	Roles    string
	From     []netip.Prefix
	Secret   string // that the proxy sends as X-Amends-Proxy; "": none
	// Ready is told the address at which a browser begins.
	Ready func(url string) error
}
