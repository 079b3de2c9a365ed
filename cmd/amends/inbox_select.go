package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/reconcile"
)

// selection says which deliveries are meant, as a person says it. List and replay have it in common.
type selection struct {
	object, tenant, kind string
	verdict              string
	since, until         string
	filter               reconcile.DeliveryFilter
}

func (s *selection) flags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&s.object, "object", "", "about this object: SOURCE:TYPE:ID, or SOURCE:TENANT:TYPE:ID")
	fl.StringVar(&s.filter.Source, "source", "", "of this source")
	fl.StringVar(&s.tenant, "tenant", "", "of this tenant of a source")
	fl.StringVar(&s.kind, "type", "", "about objects of this type")
	fl.StringVar(&s.verdict, "verdict", "", "with this verdict: "+strings.Join(verdictNames(), ", "))
	fl.StringVar(&s.since, "since", "", "received at this time or later: 2006-01-02T15:04:05Z, 2006-01-02, or how long ago, such as 2h or 7d")
	fl.StringVar(&s.until, "until", "", "received before this time")
}

// faults completes the filter as far as that needs no database, and says what is wrong with it.
func (s *selection) faults(now time.Time) []string {
	var wrong []string
	if s.verdict != "" && !slices.Contains(verdictNames(), s.verdict) {
		wrong = append(wrong, fmt.Sprintf("there is no verdict %q: it is one of %s", s.verdict, strings.Join(verdictNames(), ", ")))
	}
	s.filter.Verdict = reconcile.Verdict(s.verdict)
	s.filter.Object = reconcile.Object{Tenant: s.tenant, Type: s.kind}
	if s.object != "" {
		if s.kind != "" {
			wrong = append(wrong, "--object names the type already; leave out --type")
		}
		if len(readings(s.object)) == 0 {
			wrong = append(wrong, notAnObject(s.object))
		}
	}
	for _, t := range []struct {
		flag, text string
		at         *time.Time
	}{{"--since", s.since, &s.filter.From}, {"--until", s.until, &s.filter.Until}} {
		at, err := pointInTime(t.text, now)
		if err != nil {
			wrong = append(wrong, t.flag+" "+err.Error())
		}
		*t.at = at
	}
	if f := &s.filter; !f.From.IsZero() && !f.Until.IsZero() && !f.From.Before(f.Until) {
		wrong = append(wrong, "--since is not before --until, so nothing can match")
	}
	return wrong
}

// resolve completes the filter with the object.
func (s *selection) resolve(ctx context.Context, r reconcile.Reader) error {
	if s.object == "" {
		return nil
	}
	o, err := objectOf(ctx, r, s.object, s.tenant)
	s.filter.Object = o
	return err
}

func notAnObject(text string) string {
	return fmt.Sprintf("%q names no object: it is SOURCE:TYPE:ID, or SOURCE:TENANT:TYPE:ID", text)
}

// readings are the objects that a text may name. Sources, tenants and types have no colon, ids may have.
func readings(text string) []reconcile.Object {
	var all []reconcile.Object
	if p := strings.SplitN(text, ":", 3); len(p) == 3 && !slices.Contains(p, "") {
		all = append(all, reconcile.Object{Source: p[0], Type: p[1], ID: p[2]})
	}
	if p := strings.SplitN(text, ":", 4); len(p) == 4 && !slices.Contains(p, "") {
		all = append(all, reconcile.Object{Source: p[0], Tenant: p[1], Type: p[2], ID: p[3]})
	}
	return all
}

// objectOf is the object that a text names. Where it can be read in two ways it is the one that was heard of.
func objectOf(ctx context.Context, r reconcile.Reader, text, tenant string) (reconcile.Object, error) {
	all := readings(text)
	for i := range all {
		if tenant != "" && all[i].Tenant == "" {
			all[i].Tenant = tenant
		}
	}
	all = slices.DeleteFunc(all, func(o reconcile.Object) bool { return tenant != "" && o.Tenant != tenant })
	if len(all) == 0 {
		return reconcile.Object{}, usage("", notAnObject(text))
	}
	for _, o := range all[1:] {
		known, err := heardOf(ctx, r, o)
		if err != nil || known {
			return o, err
		}
	}
	return all[0], nil
}

// heardOfWork is what is known of the object that a work is named by, nil when nothing is.
func (a *app) heardOfWork(ctx context.Context, work string) (e *reconcile.Entry, err error) {
	objects := readings(work)
	if len(objects) == 0 {
		return nil, nil //nolint:nilnil // the work is not named by an object
	}
	err = a.listening(ctx, func(r ear) (err error) {
		for i := 0; i < len(objects) && e == nil && err == nil; i++ {
			e, err = r.Entry(ctx, objects[i])
		}
		return err
	})
	return e, err
}

func heardOf(ctx context.Context, r reconcile.Reader, o reconcile.Object) (bool, error) {
	e, err := r.Entry(ctx, o)
	if err != nil || e != nil {
		return e != nil, err
	}
	ds, err := r.Deliveries(ctx, reconcile.DeliveryFilter{Object: o, Limit: 1})
	return len(ds) > 0, err
}
