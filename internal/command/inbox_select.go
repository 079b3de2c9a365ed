package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/intake"
)

// selection says which deliveries are meant, as a person says it. List and replay have it in
// common.
type selection struct {
	object, tenant, kind string
	disposition          string
	since, until         string
	filter               intake.DeliveryFilter
}

func (s *selection) flags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&s.object, "object", "", "about this object: SOURCE:TYPE:ID, or SOURCE:TENANT:TYPE:ID")
	fl.StringVar(&s.filter.Source, "source", "", "of this source")
	fl.StringVar(&s.tenant, "tenant", "", "of this tenant of a source")
	fl.StringVar(&s.kind, "type", "", "about objects of this type")
	fl.StringVar(&s.disposition, "disposition", "", "with this disposition: "+strings.Join(dispositionNames(), ", "))
	fl.StringVar(&s.since, "since", "", "received at this time or later: 2006-01-02T15:04:05Z, 2006-01-02, or how long ago, such as 2h or 7d")
	fl.StringVar(&s.until, "until", "", "received before this time")
}

// faults completes the filter as far as that needs no database, and says what is wrong with it.
func (s *selection) faults(now time.Time) []string {
	var wrong []string
	if s.disposition != "" && !slices.Contains(dispositionNames(), s.disposition) {
		wrong = append(wrong, fmt.Sprintf("there is no disposition %q: it is one of %s", s.disposition, strings.Join(dispositionNames(), ", ")))
	}
	s.filter.Disposition = intake.Disposition(s.disposition)
	s.filter.Object = intake.Object{Tenant: s.tenant, Type: s.kind}
	if s.object != "" {
		if s.kind != "" {
			wrong = append(wrong, "--object names the type already; leave out --type")
		}
		o, err := objectOf(s.object, s.tenant)
		if err != nil {
			wrong = append(wrong, notAnObject(s.object))
		}
		s.filter.Object = o
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

func notAnObject(text string) string {
	return fmt.Sprintf("%q names no object: it is SOURCE:TYPE:ID, or SOURCE:TENANT:TYPE:ID, with %%3A for a colon within a part", text)
}

// objectOf is the object that a text names, of the tenant that is said beside it.
func objectOf(text, tenant string) (intake.Object, error) {
	o, ok := intake.ParseObject(text)
	if ok && o.Tenant == "" {
		o.Tenant = tenant
	}
	if !ok || tenant != "" && o.Tenant != tenant {
		return intake.Object{}, usage("", notAnObject(text))
	}
	return o, nil
}

// heardOfWork is what is known of the object that a work is named by, nil when nothing is.
func (a *app) heardOfWork(ctx context.Context, work string) (e *intake.Entry, err error) {
	o, ok := intake.ParseObject(work)
	if !ok {
		return nil, nil //nolint:nilnil // the work is not named by an object
	}
	err = a.listening(ctx, func(r ear) (err error) {
		e, err = r.Entry(ctx, o)
		return err
	})
	return e, err
}
