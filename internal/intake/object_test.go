package intake

import (
	"testing"

	"pgregory.net/rapid"
)

// The names of objects are what work ids are made of, so they never change. Those without a
// colon are as they read.
func TestObjectNames(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Object{
		"shop:order:10492":       {Source: "shop", Type: "order", ID: "10492"},
		"shop:eu:order:10492":    {Source: "shop", Tenant: "eu", Type: "order", ID: "10492"},
		"shop:order:100%":        {Source: "shop", Type: "order", ID: "100%"},
		"shop:order:a%2Fb%3a":    {Source: "shop", Type: "order", ID: "a%2Fb%3a"},
		"shop:order:é ☃":         {Source: "shop", Type: "order", ID: "é ☃"},
		"shop:order:17%3A9":      {Source: "shop", Type: "order", ID: "17:9"},
		"shop:a%3Ab:order%3A1:9": {Source: "shop", Tenant: "a:b", Type: "order:1", ID: "9"},
		"shop:order:%253A":       {Source: "shop", Type: "order", ID: "%3A"},
		"shop:order:%2525%%3A":   {Source: "shop", Type: "order", ID: "%25%:"},
	} {
		if got := o.String(); got != name {
			t.Errorf("%+v is named %s; want %s", o, got, name)
		}
		if got, ok := ParseObject(name); !ok || got != o {
			t.Errorf("%s is read as %+v, %t; want %+v", name, got, ok, o)
		}
	}
	for _, name := range []string{"", "shop", "shop:order", "shop:order:", ":order:1", "shop::order:1", "shop:eu:order:17:9"} {
		if got, ok := ParseObject(name); ok {
			t.Errorf("%q names no object and is read as %+v", name, got)
		}
	}
}

// Two objects never share a work id, whatever their parts are.
func TestObjectNamesAreApart(t *testing.T) {
	t.Parallel()
	part := rapid.StringMatching(`[ab:%235A]{1,8}`)
	rapid.Check(t, func(r *rapid.T) {
		draw := func(label string) Object {
			o := Object{Source: part.Draw(r, label+" source"), Type: part.Draw(r, label+" type"), ID: part.Draw(r, label+" id")}
			if rapid.Bool().Draw(r, label+" has a tenant") {
				o.Tenant = part.Draw(r, label+" tenant")
			}
			return o
		}
		a, b := draw("a"), draw("b")
		if a != b && a.String() == b.String() {
			r.Fatalf("%+v and %+v are both named %s", a, b, a)
		}
		if got, ok := ParseObject(a.String()); !ok || got != a {
			r.Fatalf("%s is read as %+v; want %+v", a, got, a)
		}
	})
}
