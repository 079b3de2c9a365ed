package command

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/intake"
)

func (a *app) inboxObjects() *cobra.Command {
	var f intake.EntryFilter
	var after string
	cmd := &cobra.Command{
		Use: "objects [OBJECT] [flags]", Args: atMostOneObject,
		Short: "List objects that were heard of, and what is owed to them",
		Long: `List the objects that were heard of, in the order of their names: the accepted version, what is owed to each, and
when a process works on it next.

"fetch" means that the source is to be asked, "deliver" that the accepted state is to be handed over to become a
work, "pending" that changes wait for one that has not come. All go on by themselves. "blocked" is what waits for a
person: mend the cause, then replay the object's deliveries. "held" is a withdrawal beyond the bound of its source: it
waits for amends inbox release, or drop.`,
		Example: `  amends inbox objects --blocked                   # what waits for a person
  amends inbox objects --owing                     # what is still to be done
  amends inbox objects shop:order:10492 -o json`,
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.Blocked, "blocked", false, "that wait for a person")
	fl.BoolVar(&f.Held, "held", false, "whose withdrawals are held")
	fl.BoolVar(&f.Owing, "owing", false, "that a fetch or a delivery is owed to")
	fl.StringVar(&f.Object.Source, "source", "", "of this source")
	fl.StringVar(&f.Object.Tenant, "tenant", "", "of this tenant of a source")
	fl.StringVar(&f.Object.Type, "type", "", "of this type")
	fl.IntVar(&f.Limit, "limit", 50, "at most this many")
	fl.StringVar(&after, "after", "", "only objects behind this one: the next page")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var wrong []string
		for _, text := range append(args, after) {
			if text == "" {
				continue
			}
			if _, ok := intake.ParseObject(text); !ok {
				wrong = append(wrong, notAnObject(text))
			}
		}
		if f.Limit < 1 {
			wrong = append(wrong, "--limit is at least 1")
		}
		if len(wrong) > 0 {
			return usage("", wrong...)
		}
		return a.runInboxObjects(cmd, f, strings.Join(args, ""), after)
	}
	return cmd
}

func atMostOneObject(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("try: "+cmd.CommandPath()+" --help", fmt.Sprintf("%s takes one object, not %d", cmd.CommandPath(), len(args)))
	}
	return said("the object", args...)
}

func (a *app) runInboxObjects(cmd *cobra.Command, f intake.EntryFilter, object, after string) error {
	limit := f.Limit
	f.Limit++
	var es []intake.Entry
	err := a.listening(cmd.Context(), func(e ear) (err error) {
		es, err = entries(cmd.Context(), e, f, object, after)
		return err
	})
	if err != nil {
		return err
	}
	es, more := page(es, limit)
	if a.json {
		return a.printEntriesJSON(es, more)
	}
	if len(es) == 0 {
		a.sayf("no objects match")
		return nil
	}
	g := grid{header: []string{"object", "version", "state", "owed", "due", "failed", "because"}}
	for i := range es {
		e := &es[i]
		g.add(e.Object.String(), e.Version.Revision(), state(e), owed(e), a.when(e.Due), failures(e.Attempts), because(e, a.now()))
	}
	a.print(&g)
	if more {
		a.sayf("there are more; the next page: %s --after %s", again(cmd), quote(es[limit-1].Object.String()))
	}
	return nil
}

// entries reads a page of entries, or the one of an object.
func entries(ctx context.Context, r intake.Reader, f intake.EntryFilter, object, after string) ([]intake.Entry, error) {
	var err error
	if after != "" {
		if f.After, err = objectOf(after, ""); err != nil {
			return nil, err
		}
	}
	if object == "" {
		return r.Entries(ctx, f)
	}
	o, err := objectOf(object, f.Object.Tenant)
	if err != nil {
		return nil, err
	}
	e, err := r.Entry(ctx, o)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, &failure{
			exit: exitNotFound, what: fmt.Sprintf("nothing was heard of %s", o),
			next: "try: amends inbox list --source " + quote(o.Source) + " --type " + quote(o.Type),
		}
	}
	return []intake.Entry{*e}, nil
}

// state is what an object is as far as is known.
func state(e *intake.Entry) string {
	switch {
	case e.Blocked != "":
		return "blocked"
	case e.Held > 0:
		return "held"
	case e.Deleted:
		return "gone"
	case e.Accepted == 0 && e.Rank == 0 && e.Version.Clock == intake.NoClock && len(e.Body) == 0:
		return "not known"
	default:
		return "known"
	}
}

// owed is what is still to be done for an object.
func owed(e *intake.Entry) string {
	var all []string
	if e.Dirty > e.Clean {
		all = append(all, "fetch")
	}
	if e.Accepted > e.Delivered {
		all = append(all, "deliver")
	}
	if n := len(e.Parked); n > 0 {
		all = append(all, fmt.Sprintf("%d pending", n))
	}
	return strings.Join(all, ", ")
}

// because is why an object is where it is.
func because(e *intake.Entry, now time.Time) string {
	why := cmp.Or(e.Blocked, e.LastError)
	if why == "" && e.Held > 0 {
		return "its withdrawal is beyond the bound of its source"
	}
	if e.Owing() && e.Holder != "" && e.Until.After(now) {
		return cmp.Or(why, "a process works on it; if that has died, another one does after "+iso(e.Until))
	}
	return why
}

// failures is how often something failed in a row.
func failures(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n) + "×"
}

// entryJSON is what is known of an object, as JSON.
type entryJSON struct {
	WorkID      string     `json:"workId"` // the object as works are named by it
	Object      objectJSON `json:"object"`
	State       string     `json:"state"` // known, gone, not known, blocked, held
	Version     string     `json:"version"`
	Newest      string     `json:"newestVersion"` // that a delivery or a fetch named
	Learned     string     `json:"origin"`        // event, or fetch
	Fingerprint string     `json:"fingerprint"`
	Body        *bodyJSON  `json:"body"`
	Accepted    int64      `json:"accepted"`  // states
	Delivered   int64      `json:"delivered"` // of them
	Fetch       bool       `json:"fetchOwed"`
	Deliver     bool       `json:"deliveryOwed"`
	Parked      int        `json:"pendingEvents"`
	Due         *time.Time `json:"dueAt"`
	Holder      string     `json:"leaseHolder"` // the process that works on it
	Until       *time.Time `json:"leasedUntil"`
	Attempts    int        `json:"failedAttempts"` // failed in a row
	Error       string     `json:"lastError"`
	Blocked     string     `json:"blockedReason"`
	First       *time.Time `json:"firstSeenAt"`
	Updated     *time.Time `json:"updatedAt"`
}

func entryToJSON(e *intake.Entry, bodies bool) *entryJSON {
	if e == nil {
		return nil
	}
	j := entryJSON{
		WorkID: e.Object.String(), Object: objectJSON(e.Object), State: state(e), Version: e.Version.Revision(), Newest: e.Newest.Revision(),
		Learned: "event", Body: bodyToJSON(e.Body, bodies), Accepted: e.Accepted, Delivered: e.Delivered,
		Fetch: e.Dirty > e.Clean, Deliver: e.Accepted > e.Delivered, Parked: len(e.Parked), Due: utc(e.Due),
		Holder: e.Holder, Attempts: e.Attempts, Error: e.LastError, Blocked: e.Blocked, First: utc(e.First), Updated: utc(e.Updated),
	}
	if e.Rank > 0 {
		j.Learned = "fetch"
	}
	if !e.Fingerprint.IsZero() {
		j.Fingerprint = hex.EncodeToString(e.Fingerprint[:])
	}
	if e.Holder != "" {
		j.Until = utc(e.Until)
	}
	return &j
}

func (a *app) printEntriesJSON(es []intake.Entry, more bool) error {
	return a.printJSON(listed(es, more,
		func(e *intake.Entry) *entryJSON { return entryToJSON(e, false) },
		func(e *intake.Entry) string { return e.Object.String() }))
}
