package desk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
)

// Which says which instance is meant, as a person says it: by its work id, which several sagas may share.
type Which struct {
	Work string `path:"work"`
	Saga string `path:"saga" flag:"saga" doc:"the saga, where several know the work id"`
}

// InSaga is the saga that is named.
func (w *Which) InSaga() string { return w.Saga }

// NoRevision is how the run of an instance is written whose source has no versions.
const NoRevision = "-"

// RunName is a run as lists print it and acts read it: its revision.
func RunName(revision string) string { return cmp.Or(revision, NoRevision) }

func revisionOf(run string) string {
	if run == NoRevision {
		return ""
	}
	return run
}

// find returns the one instance that is meant.
func (d *Desk) find(ctx context.Context, w *Which) (ledger.Instance, error) {
	if w.Work == "" { // a filter that says nothing finds every one
		return ledger.Instance{}, Empty("the work id")
	}
	heads, err := ledger.First(ctx, d.db, ledger.Filter{Work: w.Work, Saga: w.Saga})
	switch {
	case err != nil:
		return ledger.Instance{}, err
	case len(heads) == 1:
		return heads[0], nil
	case len(heads) == 0:
		return ledger.Instance{}, w.unknown()
	}
	f := several(heads, func(h *ledger.Instance) string { return h.ID.Saga })
	f.What = fmt.Sprintf("%d sagas know the work %q: %s", len(heads), w.Work, f.What)
	f.Next = "say which: --saga " + quote(heads[0].ID.Saga)
	return ledger.Instance{}, f
}

func (w *Which) unknown() error {
	what := fmt.Sprintf("there is no work %q", w.Work)
	next := "try: amends list --prefix " + quote(stem(w.Work))
	if w.Saga != "" {
		what += fmt.Sprintf(" of saga %q", w.Saga)
		next = "try it without --saga, or: amends list --prefix " + quote(stem(w.Work))
	}
	if _, ok := intake.ParseObject(w.Work); ok {
		next += "; for what webhooks said of it: amends inbox list --object " + quote(w.Work)
	}
	return &Failure{Code: NotFound, What: what, Why: errors.New("nothing was ever started under that id in this ledger"), Next: next}
}

// maker finds the one instance that recorded an external id.
func (d *Desk) maker(ctx context.Context, externalID string) (ledger.Instance, error) {
	heads, err := ledger.First(ctx, d.db, ledger.Filter{ExternalID: externalID})
	switch {
	case err != nil:
		return ledger.Instance{}, err
	case len(heads) == 1:
		return heads[0], nil
	case len(heads) == 0:
		return ledger.Instance{}, &Failure{
			Code: NotFound, What: fmt.Sprintf("no work of this ledger recorded the external id %q", externalID),
			Why:  errors.New("either something else made it, or its answer was never recorded"),
			Next: "look at the destination for the key or reference under which it was made, and at: amends list --review",
		}
	}
	f := several(heads, func(h *ledger.Instance) string { return h.ID.String() })
	f.What = fmt.Sprintf("%d works recorded the external id %q: %s", len(heads), externalID, f.What)
	f.Next = "show one of them by its work id; all of them: amends list --external-id " + quote(externalID)
	return ledger.Instance{}, f
}

// several asks for more, and names what there is to choose from.
func several(heads []ledger.Instance, called func(*ledger.Instance) string) *Failure {
	const few = 5
	var names []string
	for i := range heads[:min(few, len(heads))] {
		names = append(names, fmt.Sprintf("%s (%s)", called(&heads[i]), heads[i].Status))
	}
	if len(heads) > few {
		names = append(names, "…")
	}
	details := docs(heads, func(h *ledger.Instance) Head { return headOf(h, nil) })
	return &Failure{Code: Misuse, What: strings.Join(names, ", "), Details: map[string]any{"works": details}}
}

// stem is a work id without its last part, where a mistake is most likely.
func stem(work string) string {
	if i := strings.LastIndexAny(work, ":/"); i > 0 && i < len(work)-1 {
		return work[:i+1]
	}
	r := []rune(work)
	return string(r[:(len(r)+1)/2])
}

// specOf returns the structure of a definition as the ledger knows it, or nil.
func (k *knowledge) specOf(name string, version int) *program.Spec {
	return k.specs[ledger.Version{Saga: name, Version: version}]
}

// ID names an instance.
type ID struct {
	Saga string `json:"saga"`
	Work string `json:"workId"`
}
