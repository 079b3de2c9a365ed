package reconcile

import "strings"

// Object names one object of a source of truth.
type Object struct {
	Source string // shop: as the operator configured it
	Tenant string // the account, shop or realm within the source; empty when there is only one
	Type   string // order
	ID     string // 10492: as the source calls it
}

// String returns the object as work ids are written: shop:order:10492, or shop:eu:order:10492 with a tenant.
func (o Object) String() string {
	parts := []string{o.Source, o.Tenant, o.Type, o.ID}
	if o.Tenant == "" {
		parts = []string{o.Source, o.Type, o.ID}
	}
	return strings.Join(parts, ":")
}
