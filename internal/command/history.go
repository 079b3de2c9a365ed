package command

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

func (a *app) history() *cobra.Command {
	var s scope
	var bodies bool
	cmd := &cobra.Command{
		Use: "history (WORK | --destination NAME | --saga NAME | --all) [flags]", Aliases: []string{"timeline"}, Args: atMostOneWork,
		Short: "Show everything that happened to a work, record by record",
		Long: `Show the chain of a work: one line a record, and one record a decision. A record says what was learned
("invoice #2 unknown" is: the outcome of the second attempt of step invoice is unknown), and behind the arrow
which attempt it set in motion, with its deadline and its idempotency key. Attempts with the same key are the
same intent.

Inputs and results are not shown, only their size and hash. --bodies shows them; mind who is looking.

Without a WORK: who paused and resumed a destination, a saga or everything, when and why, the newest 100 first.`,
		Example: `  amends history shop:order:10492
  amends history shop:order:10492 -o json | jq -r '.records[] | [.at, .kind, .step] | @tsv'
  amends history shop:order:10492 --bodies
  amends history --destination books`,
	}
	s.names(cmd)
	cmd.Flags().BoolVar(&bodies, "bodies", false, "show inputs and results, too")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		isWork, wrong := s.named(cmd, args, "WORK")
		if len(wrong) > 0 {
			return usage("try: amends history --help", wrong...)
		}
		if !isWork {
			return a.runActs(cmd.Context(), &s)
		}
		s.work = args[0]
		return a.with(cmd.Context(), func(st store) error {
			head, err := s.which.find(cmd.Context(), st)
			if err != nil {
				return err
			}
			records, err := st.History(cmd.Context(), head.ID)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(historyToJSON(head.ID, records, bodies))
			}
			a.printHistory(head.ID, records, bodies)
			return nil
		})
	}
	return cmd
}

func (a *app) printHistory(id saga.ID, records []machine.Record, bodies bool) {
	g := grid{header: []string{"seq", "at", "status", "what happened"}}
	for i := range records {
		r := &records[i]
		g.add(strconv.FormatInt(r.Seq, 10), exact(r.At), standing(r.Status, r.Reason), told(r))
		if bodies && len(r.Body) > 0 {
			g.add("", "", "", string(r.Body))
		}
	}
	a.field("work", id.Work)
	a.field("saga", id.Saga)
	fmt.Fprintln(a.out)
	a.print(&g)
}

// told is a record in words: what was learned, and behind the arrow what it set in motion.
func told(r *machine.Record) string {
	words := learned(r)
	if r.ExternalID != "" {
		words += " = " + r.ExternalID
	}
	if r.BodyDropped {
		words += " (the result was too large and is not kept)"
	}
	said := r.Said()
	if by := "started by " + r.Actor; r.Cause == by && said == "says "+r.Actor {
		words, said = words+", "+by, ""
	} else if r.Cause != "" {
		words += ", caused by " + r.Cause
	}
	if (r.Kind == machine.KindWaiting || r.Kind == machine.KindExtended || r.Kind == machine.KindOpened) && !r.Until.IsZero() {
		words += ", until " + iso(r.Until)
	}
	if said != "" {
		words += ": " + said
	}
	if r.Erased != (machine.Erased{}) {
		words += " (what it said was erased)"
	}
	if r.Wait > 0 {
		at := clock
		if r.Wait > 12*time.Hour {
			at = iso
		}
		words += fmt.Sprintf(" (due again at %s)", at(r.At.Add(r.Wait)))
	}
	if m := r.Dispatch; m != nil {
		words += fmt.Sprintf(" → %s until %s, key %s", effect(m.Step, m.Direction, m.Attempt), clock(r.Deadline()), m.Key)
	}
	return words
}

// learned is the first half of a record: who did what, in the words of the ledger.
func learned(r *machine.Record) string {
	switch {
	case r.Kind == machine.KindAdopted && r.Step == "":
		return "adopted"
	case r.Kind == machine.KindAdopted && r.Class == saga.Unsent:
		return "adopted: " + r.Step + " does not stand"
	case r.Kind == machine.KindAdopted && r.Class == saga.Refused:
		return "not adopted: " + r.Step
	case r.Kind == machine.KindAdopted:
		return "adopted: " + strings.TrimSpace(r.Step+" "+of(r.Revision))
	case r.Kind == machine.KindStarted && r.Revision != "":
		return fmt.Sprintf("started with %d bytes of input, revision %s, by definition version %d", len(r.Body), r.Revision, r.Version)
	case r.Kind == machine.KindStarted:
		return fmt.Sprintf("started with %d bytes of input, by definition version %d", len(r.Body), r.Version)
	case r.Kind == machine.KindRevised:
		return fmt.Sprintf("begun again for revision %s, by definition version %d", r.Revision, r.Version)
	case r.Kind == machine.KindHeard && len(r.Body) > 0:
		return fmt.Sprintf("heard of revision %s, %d bytes of input", r.Revision, len(r.Body))
	case r.Kind == machine.KindHeard:
		return "heard of revision " + r.Revision
	case r.Step == "" && r.Revision != "":
		return string(r.Kind) + " at revision " + r.Revision
	case r.Step == "":
		return string(r.Kind)
	default:
		return effect(r.Step, r.Direction, r.Attempt) + " " + string(r.Kind)
	}
}

// of names the version of the source that something shows.
func of(revision string) string {
	if revision == "" {
		return ""
	}
	return "of revision " + revision
}

// recordJSON is a record as JSON. Bodies are named by size and hash; their content only when asked
// for.
type recordJSON struct {
	Seq        int64          `json:"seq"`
	Hash       machine.Hash   `json:"hash"`
	Session    string         `json:"session"` // the writer
	At         *time.Time     `json:"at"`
	Kind       machine.Kind   `json:"kind"`
	Words      string         `json:"words"`             // what happened, as it is printed
	Version    int            `json:"version,omitempty"` // of the definition: started, heard and revised
	Revision   string         `json:"revision,omitempty"`
	Nonce      int64          `json:"nonce,string,omitempty"`
	Step       string         `json:"step"`
	Direction  saga.Direction `json:"direction"`
	Attempt    int            `json:"attempt"`
	ExternalID string         `json:"externalId"`
	Body       *bodyJSON      `json:"body"`
	Dropped    bool           `json:"bodyDropped"`
	Class      saga.Class     `json:"errorClass"`
	Error      string         `json:"error"`
	Note       string         `json:"note"`
	Actor      string         `json:"actor"`
	Why        string         `json:"why"`
	Cause      string         `json:"cause"`
	Signals    []string       `json:"signals"`
	Status     saga.Status    `json:"status"`
	Reason     saga.Reason    `json:"reason"`
	Due        *time.Time     `json:"dueAt"`
	Until      *time.Time     `json:"until"` // of a wait its end, of a start for later its beginning
	Arm        *armJSON       `json:"dispatch"`
	Snapshot   *bodyJSON      `json:"snapshot"`
}

type bodyJSON struct {
	SHA256  string          `json:"sha256"`
	Bytes   int             `json:"bytes"`
	Content json.RawMessage `json:"content,omitempty"`
}

type armJSON struct {
	Step      string         `json:"step"`
	Direction saga.Direction `json:"direction"`
	Attempt   int            `json:"attempt"`
	Key       string         `json:"key"`
	Reissue   int            `json:"reissue"`
	Deadline  *time.Time     `json:"deadlineAt"`
}

type historyJSON struct {
	WorkID  string       `json:"workId"`
	Saga    string       `json:"saga"`
	Records []recordJSON `json:"records"`
}

func historyToJSON(id saga.ID, records []machine.Record, bodies bool) historyJSON {
	h := historyJSON{WorkID: id.Work, Saga: id.Saga, Records: make([]recordJSON, len(records))}
	for i := range records {
		h.Records[i] = recordToJSON(&records[i], bodies)
	}
	return h
}

func recordToJSON(r *machine.Record, bodies bool) recordJSON {
	j := recordJSON{
		Seq: r.Seq, Hash: r.Hash, Session: session(r.Session), At: utc(r.At), Kind: r.Kind, Words: told(r), Version: r.Version,
		Revision: r.Revision, Nonce: r.Nonce, Step: r.Step, Direction: r.Direction, Attempt: r.Attempt,
		ExternalID: r.ExternalID, Body: bodyToJSON(r.Body, bodies), Dropped: r.BodyDropped, Class: r.Class,
		Error: r.Error, Note: r.Note, Actor: r.Actor, Why: r.Why, Cause: r.Cause, Signals: make([]string, len(r.Signals)), Status: r.Status, Reason: r.Reason,
		Snapshot: bodyToJSON(r.Snapshot, bodies), Until: utc(r.Until),
	}
	for i, id := range r.Signals {
		j.Signals[i] = strconv.FormatInt(id, 10)
	}
	if r.Wait > 0 {
		j.Due = utc(r.At.Add(r.Wait))
	}
	if m := r.Dispatch; m != nil {
		j.Arm = &armJSON{m.Step, m.Direction, m.Attempt, m.Key, m.Reissue, utc(r.Deadline())}
	}
	return j
}

func bodyToJSON(b json.RawMessage, content bool) *bodyJSON {
	if len(b) == 0 {
		return nil
	}
	sum := sha256.Sum256(b)
	j := &bodyJSON{SHA256: hex.EncodeToString(sum[:]), Bytes: len(b)}
	if content {
		j.Content = b
	}
	return j
}
