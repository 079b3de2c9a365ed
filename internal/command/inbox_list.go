package command

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/intake"
)

func (a *app) inboxList() *cobra.Command {
	var s selection
	cmd := &cobra.Command{
		Use: "list [flags]", Aliases: []string{"ls"}, Args: noArguments,
		Short: "List deliveries, newest first",
		Long: `List the deliveries that were verified and stored, the newest first, with what the gate made of each and why.
Copies of one event are one delivery. Those that the gate has not seen yet are "to be judged".

When there are more than --limit, the last line (stderr) is the command for the next page; with -o json
"next" is the number to give to --before, null on the last page.`,
		Example: `  amends inbox list --object shop:order:10492
  amends inbox list --source shop --disposition malformed --since 24h
  amends inbox list --pending                      # stored and not yet judged
  amends inbox list --since 1d -o json | jq -r '.items[] | [.number, .workId, .disposition] | @tsv'`,
	}
	s.flags(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&s.filter.Unjudged, "pending", false, "that wait to be judged")
	fl.IntVar(&s.filter.Limit, "limit", 50, "at most this many")
	fl.Int64Var(&s.filter.Before, "before", 0, "only deliveries with a smaller number: the next page")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		wrong := s.faults(a.now())
		if s.filter.Limit < 1 {
			wrong = append(wrong, "--limit is at least 1")
		}
		if len(wrong) > 0 {
			return usage("", wrong...)
		}
		return a.runInboxList(cmd, &s)
	}
	return cmd
}

func (a *app) runInboxList(cmd *cobra.Command, s *selection) error {
	limit := s.filter.Limit
	var ds []intake.Delivery
	err := a.listening(cmd.Context(), func(e ear) (err error) {
		f := s.filter
		f.Limit++ // one more tells whether there is a next page
		ds, err = e.Deliveries(cmd.Context(), f)
		return err
	})
	if err != nil {
		return err
	}
	ds, more := page(ds, limit)
	if a.json {
		return a.printJSON(listed(ds, more,
			func(d *intake.Delivery) deliveryJSON { return deliveryToJSON(d, false) },
			func(d *intake.Delivery) int64 { return d.Number }))
	}
	if len(ds) == 0 {
		a.sayf("no deliveries match")
		return nil
	}
	a.printDeliveries(ds)
	if more {
		a.sayf("there are more; the next page: %s --before %d", again(cmd), ds[limit-1].Number)
	}
	return nil
}

func (a *app) printDeliveries(ds []intake.Delivery) {
	g := grid{header: []string{"number", "received", "object", "topic", "version", "times", "disposition", "because"}}
	for i := range ds {
		d := &ds[i]
		g.add(strconv.FormatInt(d.Number, 10), a.when(d.Received), d.Object.String(), d.Topic, d.Version.Revision(),
			strconv.Itoa(d.Copies), disposition(d), d.Because)
	}
	a.print(&g)
}

// disposition is what became of a delivery, in a word or two. Of one that is replayed the
// disposition is the former one.
func disposition(d *intake.Delivery) string {
	switch {
	case !d.Judged.IsZero():
		return string(d.Outcome)
	case d.Outcome != "":
		return "to be judged again"
	default:
		return "to be judged"
	}
}

// objectJSON is an object as JSON.
type objectJSON struct {
	Source string `json:"source"`
	Tenant string `json:"tenant"`
	Type   string `json:"type"`
	ID     string `json:"id"`
}

// deliveryJSON is a delivery as JSON.
type deliveryJSON struct {
	Number      int64              `json:"number,string"` // the cursor: --before
	Received    *time.Time         `json:"receivedAt"`
	WorkID      string             `json:"workId"` // the object as works are named by it
	Object      objectJSON         `json:"object"`
	Topic       string             `json:"topic"`
	EventID     string             `json:"eventId"`
	At          *time.Time         `json:"occurredAt"` // by the event's own word
	Payload     intake.Payload     `json:"payloadKind"`
	Deleted     bool               `json:"deleted"`
	Version     string             `json:"version"`
	Secret      string             `json:"signedBy"` // the name of the one that signed, never the secret
	Copies      int                `json:"copies"`
	Last        *time.Time         `json:"lastAt"` // when the latest copy came
	Judged      *time.Time         `json:"processedAt"`
	Disposition intake.Disposition `json:"disposition"` // while judgedAt is null, of an earlier judgement
	Because     string             `json:"reason"`
	Body        *bodyJSON          `json:"body"` // null: there was none, or it is not kept any more
}

func deliveryToJSON(d *intake.Delivery, bodies bool) deliveryJSON {
	return deliveryJSON{
		Number: d.Number, Received: utc(d.Received), WorkID: d.Object.String(), Object: objectJSON(d.Object), Topic: d.Topic, EventID: d.ID,
		At: utc(d.At), Payload: d.Payload, Deleted: d.Deleted, Version: d.Version.Revision(), Secret: d.Secret,
		Copies: d.Copies, Last: utc(d.Last), Judged: utc(d.Judged), Disposition: d.Outcome, Because: d.Because,
		Body: bodyToJSON(d.Body, bodies),
	}
}

// sized names a body without showing it.
func sized(body []byte) string {
	if len(body) == 0 {
		return "none is kept"
	}
	sum := sha256.Sum256(body)
	return strconv.Itoa(len(body)) + " bytes, sha256 " + hex.EncodeToString(sum[:])
}
