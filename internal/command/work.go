package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// which says which work is meant, as a person says it: by its id, which several sagas may share, or
// by what a destination calls something it made.
type which struct {
	work       string
	saga       string
	externalID string
	run        string // the last run that was shown, as [runName] writes it; "": it is not said
}

// noRevision is how the run of a work is written whose source has no versions.
const noRevision = "-"

// runName is a run as list -o ids prints it and the verbs read it: its revision.
func runName(revision string) string { return cmp.Or(revision, noRevision) }

func revisionOf(run string) string {
	if run == noRevision {
		return ""
	}
	return run
}

// The arguments of verbs: at most one, and it is a work id.

// said refuses an argument that is empty. A shell makes one of a variable that was never set, and to
// take it for "none was said" would mean another work, or all.
func said(what string, args ...string) error {
	if slices.Contains(args, "") {
		return isEmpty(what)
	}
	return nil
}

func isEmpty(what string) error {
	return usage("if it came from a variable, the variable is empty", what+" is empty")
}

func worksSaid(_ *cobra.Command, args []string) error { return said("the work id", args...) }

func oneWork(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("try: "+cmd.CommandPath()+" --help", "name the work: "+cmd.CommandPath()+" WORK")
	}
	return atMostOneWork(cmd, args)
}

func atMostOneWork(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage(fmt.Sprintf("a work id with spaces needs quotes; try: %s --help", cmd.CommandPath()),
			fmt.Sprintf("%s takes one work, not %d: %s", cmd.CommandPath(), len(args), strings.Join(args, " ")))
	}
	return worksSaid(cmd, args)
}

func noWork(cmd *cobra.Command, args []string) error {
	if err := worksSaid(cmd, args); err != nil {
		return err
	}
	if len(args) > 0 {
		return usage("one work is shown by: "+program.Command("show", args[0], "")+"; those that begin alike by: amends list --prefix "+quote(args[0]),
			cmd.CommandPath()+" takes no work")
	}
	return nil
}

func (w *which) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.saga, "saga", "", "the saga, where several know the work id")
}

// find returns the one work that is meant.
func (w *which) find(ctx context.Context, s store) (ledger.Instance, error) {
	if w.work == "" && w.externalID == "" { // a filter that says nothing finds every work
		return ledger.Instance{}, isEmpty("the work id")
	}
	heads, err := ledger.First(ctx, s, ledger.Filter{Work: w.work, Saga: w.saga, ExternalID: w.externalID})
	switch {
	case err != nil:
		return ledger.Instance{}, err
	case len(heads) == 1:
		return heads[0], nil
	case len(heads) == 0:
		return ledger.Instance{}, w.unknown()
	}
	return ledger.Instance{}, w.several(heads)
}

func (w *which) unknown() error {
	if w.externalID != "" {
		return &failure{
			exit: exitNotFound, what: fmt.Sprintf("no work of this ledger recorded the external id %q", w.externalID),
			err:  errors.New("either something else made it, or its answer was never recorded"),
			next: "look at the destination for the key or reference under which it was made, and at: amends list --review",
		}
	}
	what := fmt.Sprintf("there is no work %q", w.work)
	if w.saga != "" {
		what += fmt.Sprintf(" of saga %q", w.saga)
	}
	next := "try: amends list --prefix " + quote(stem(w.work))
	if w.saga != "" {
		next = "try it without --saga, or: amends list --prefix " + quote(stem(w.work))
	}
	if _, ok := intake.ParseObject(w.work); ok {
		next += "; for what webhooks said of it: amends inbox list --object " + quote(w.work)
	}
	return &failure{exit: exitNotFound, what: what, err: errors.New("nothing was ever started under that id in this ledger"), next: next}
}

// stem is a work id without its last part, where a mistake is most likely.
func stem(work string) string {
	if i := strings.LastIndexAny(work, ":/"); i > 0 && i < len(work)-1 {
		return work[:i+1]
	}
	r := []rune(work)
	return string(r[:(len(r)+1)/2])
}

// several asks for more, and names what there is to choose from.
func (w *which) several(heads []ledger.Instance) error {
	const few = 5
	details := make([]headJSON, len(heads))
	var names []string
	for i := range heads {
		h := &heads[i]
		details[i] = headToJSON(h, nil)
		switch {
		case i >= few:
		case w.externalID != "":
			names = append(names, fmt.Sprintf("%s (%s)", h.ID, h.Status))
		default:
			names = append(names, fmt.Sprintf("%s (%s)", h.ID.Saga, h.Status))
		}
	}
	if len(heads) > few {
		names = append(names, "…")
	}
	f := &failure{exit: exitUsage, details: map[string]any{"works": details}}
	if w.externalID != "" {
		f.what = fmt.Sprintf("%d works recorded the external id %q: %s", len(heads), w.externalID, strings.Join(names, ", "))
		f.next = "show one of them by its work id; all of them: amends list --external-id " + quote(w.externalID)
		return f
	}
	f.what = fmt.Sprintf("%d sagas know the work %q: %s", len(heads), w.work, strings.Join(names, ", "))
	f.next = "say which: --saga " + quote(heads[0].ID.Saga)
	return f
}

// view is one work, read at one moment.
type view struct {
	head       ledger.Instance
	state      *machine.State
	at         time.Time     // by the ledger's clock
	spec       *program.Spec // nil when the ledger does not know the definition
	summary    saga.Summary
	turned     string           // why it was turned back, in the words of the ledger; "" when it was not
	pending    []machine.Signal // posted and not yet consumed
	duplicates []ledger.Duplicate
	knowledge  *knowledge
	waits      string        // what keeps it that it cannot help, in words: a destination, or a process that is not there; "": nothing
	lacking    string        // the definition that it waits for and no live process knows; "" when there is none
	heard      *intake.Entry // of the object the work is named by; only for show, nil when nothing was
}

func look(ctx context.Context, s store, id saga.ID) (*view, error) {
	chains, err := s.Load(ctx, []saga.ID{id})
	if err != nil {
		return nil, err
	}
	if len(chains) == 0 {
		return nil, fmt.Errorf("%s: %w", id, ledger.ErrNotFound)
	}
	v := &view{head: chains[0].Instance, at: chains[0].At}
	if v.state, err = machine.Fold(id, chains[0].Records); err != nil {
		return nil, &failure{
			exit: exitFailed, what: "the chain of this work is damaged", err: err,
			next: "leave it alone and run: amends check --prefix " + quote(id.Work),
		}
	}
	if v.state.Turned {
		v.turned = turned(chains[0].Records)
	}
	for i := range chains[0].Signals {
		if sig := &chains[0].Signals[i]; !v.state.Saw(sig.ID) {
			v.pending = append(v.pending, *sig)
		}
	}
	if v.spec, err = specOf(ctx, s, id.Saga, v.state.Version); err != nil {
		return nil, err
	}
	if v.knowledge, err = whoKnows(ctx, s); err != nil {
		return nil, err
	}
	if v.head.WaitsFor != "" {
		if v.knowledge.flow, err = flowOf(ctx, s); err != nil {
			return nil, err
		}
	}
	v.summary = machine.Summarize(v.spec, v.state)
	if v.knowledge.flow != nil {
		v.waits = v.knowledge.flow.then(v.head.WaitsFor)
	}
	if v.lacking = v.knowledge.lacking(&v.head); v.lacking != "" && v.state.Status.Live() {
		v.waits = startOne(v.lacking)
	}
	v.summary.Next = cmp.Or(v.waits, v.summary.Next)
	v.duplicates, err = s.Duplicates(ctx, ledger.Filter{Saga: id.Saga, Work: id.Work})
	return v, err
}

// turned is why a work was turned back: the record since the latest revision that did it, in words.
func turned(records []machine.Record) string {
	words := ""
	for i := range records {
		r := &records[i]
		back := r.Kind == machine.KindCancelled || r.Status == saga.Compensating || r.Status == saga.Compensated
		switch {
		case r.Kind == machine.KindRevised:
			words = ""
		case back && words == "":
			words = learned(r)
			if r.Said() != "" {
				words += ": " + r.Said()
			}
		}
	}
	return words
}

// specOf returns the structure of a definition as the ledger knows it, or nil.
func specOf(ctx context.Context, s store, name string, version int) (*program.Spec, error) {
	ds, err := s.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(ds, func(d ledger.Definition) bool { return d.Spec.Saga == name && d.Spec.Version == version })
	if i < 0 {
		return nil, nil //nolint:nilnil // an honest answer: machine.Summarize takes it as "not known"
	}
	return &ds[i].Spec, nil
}
