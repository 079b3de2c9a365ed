package webhook

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/faults"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// bind gives an event its type, where the provider signs the body and names the type in a header.
// signed is what the body says it is, empty when it does not say, and named what the header says.
// Only where both are the same type the event keeps its state: with a captured body any header can
// be sent.
func (m *message) bind(e *intake.Event, signed, named string, deleted bool) {
	switch {
	case signed != "" && (signed != named || deleted):
		e.Object.Type = signed
		hint(e, fmt.Sprintf("its header says %s, which its body does not", e.Topic))
	case signed != "":
		e.Object.Type = signed
	case slices.Contains(m.Types, named):
		e.Object.Type, e.Deleted = named, deleted
		hint(e, "its type is told by a header only, which is not signed")
	default:
		e.Disposition, e.Why = intake.Unknown, "its type is told by a header only, which is not signed, and is not among the source's Types"
	}
}

// hint takes from an event what it proves.
func hint(e *intake.Event, why string) {
	e.Payload, e.Version, e.Why = intake.Thin, inbox.Version{}, why
}

// identity is what makes two deliveries one event of the source. Where nothing but the body is
// signed it is the body with what it is about; the ids in the header are for people. A tenant that
// is not set up is no part of it: one captured body under a thousand names that were made up is one
// event.
//
// A body that tells no time may come again word for word when the same has happened again, as a
// second deletion: so it is the same event only within a minute.
func (s *source) identity(e *intake.Event) intake.Digest {
	tenant, d, minute := e.Object.Tenant, e.Dedupe, ""
	if e.Disposition == "" && e.Version.Clock == inbox.NoClock && e.At.IsZero() && (d.IsZero() || s.Provider.headersUnsigned) {
		minute = strconv.FormatInt(e.Received.Truncate(time.Minute).Unix(), 10)
	}
	if d.IsZero() {
		d = byContent(e)
	}
	switch {
	case s.Provider.headersUnsigned:
		if !s.knows(tenant) {
			tenant = "\x00" // no name of a tenant
		}
		return intake.DigestOf("signed", tenant, e.Object.Type, e.Object.ID, string(e.Payload), minute, string(d[:]))
	case minute != "":
		return intake.DigestOf("event", tenant, string(d[:]), minute)
	}
	return intake.DigestOf("event", tenant, string(d[:]))
}

// knows reports whether a tenant is set up. Without one, the only tenant is meant.
func (s *source) knows(tenant string) bool {
	return tenant == "" || slices.Contains(s.Tenants, tenant) || slices.Contains(s.Tenants, AnyTenant)
}

// shares reports whether the source has more tenants than one.
func (c *Sender) shares() bool { return len(c.Tenants) > 1 || slices.Contains(c.Tenants, AnyTenant) }

// validateHeaders says what a source must not leave to headers that are not signed.
func (c *Sender) validateHeaders(f *faults.List) {
	p := c.Provider
	f.Whenf(!slices.Contains([]Headers{HeadersDoubted, HeadersHint, HeadersTrusted}, c.Headers), "Headers is %q, which is none", c.Headers)
	f.Whenf(c.Headers != HeadersDoubted && !p.headersUnsigned, "Headers is set, but %s takes nothing from headers that are not signed", p.name)
	if !p.headersUnsigned {
		return
	}
	captured := p.name + " does not sign the headers, so one captured delivery, sent again with another header, would be "
	f.Whenf(c.shares() && c.Headers == HeadersDoubted,
		"it has several Tenants (%s), and %sanother tenant's: say one tenant, or HeadersHint to have the source asked about each delivery, "+
			"or HeadersTrusted where only the sender can set headers", strings.Join(c.Tenants, ", "), captured)
	f.Whenf(slices.Contains(c.Tenants, AnyTenant) && c.Headers == HeadersHint,
		"it has AnyTenant, and %sof as many tenants as there are names: name the tenants", captured)
	f.Whenf(len(c.Types) == 0 && c.Headers == HeadersDoubted,
		"it has no Types, and %sof any type: say which types are wanted", captured)
}
