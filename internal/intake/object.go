package intake

import "strings"

// Object names one object of a source of truth.
type Object struct {
	Source string `json:"source"` // shop: as the operator configured it
	Tenant string `json:"tenant"` // the account, shop or realm within the source; empty when there is only one
	Type   string `json:"type"`   // order
	ID     string `json:"id"`     // 10492: as the source calls it
}

// String returns the object as work ids are written: shop:order:10492, or shop:eu:order:10492 with
// a tenant. A colon within a part is written %3A, and a percent sign that would make %3A or %25
// with what follows it is written %25, so that two objects never have one name. [ParseObject] reads
// it.
func (o Object) String() string {
	parts := []string{o.Source, o.Tenant, o.Type, o.ID}
	if o.Tenant == "" {
		parts = []string{o.Source, o.Type, o.ID}
	}
	for i, p := range parts {
		parts[i] = escape.Replace(p)
	}
	return strings.Join(parts, ":")
}

// ParseObject reads what [Object.String] wrote. It reports false for what names no object: without
// a source, a type and an id, or with more than four parts.
func ParseObject(name string) (Object, bool) {
	parts := strings.Split(name, ":")
	for i, p := range parts {
		if p == "" {
			return Object{}, false
		}
		parts[i] = unescape.Replace(p)
	}
	switch len(parts) {
	case 3:
		return Object{Source: parts[0], Type: parts[1], ID: parts[2]}, true
	case 4:
		return Object{Source: parts[0], Tenant: parts[1], Type: parts[2], ID: parts[3]}, true
	}
	return Object{}, false
}

// A percent sign is escaped only where it could be taken for an escape, so that ids without colons
// keep their names.
var (
	escape   = strings.NewReplacer(":", "%3A", "%3A", "%253A", "%25", "%2525")
	unescape = strings.NewReplacer("%3A", ":", "%25", "%")
)
