package machine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	goflag "flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

var rewrite = goflag.Bool("rewrite", false, "write what the machine says into the stories of testdata")

// TestStories runs the stories in testdata, which are there to be read, in the order of their
// names. A story is made of blocks: a command, a line of dashes, and what the machine records and
// says. After a change of the machine run
//
//	go test ./internal/machine -run Stories -rewrite
//
// and read the difference. The commands are at the methods of story.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d stories (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := tell(t, string(want))
			if got == string(want) {
				return
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s: %s", file, firstDifference(string(want), got))
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\nhas  %s\nwant %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

const dashes = "----"

// tell plays a story and returns it with what the machine says now.
func tell(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	s := &story{desk: desk{t: t, st: &State{ID: order}, now: noon}}
	for block := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n\n") {
		command, _, isCommand := strings.Cut(block, "\n"+dashes)
		if !isCommand {
			out.WriteString(block + "\n\n") // prose
			continue
		}
		out.WriteString(command + "\n" + dashes + "\n" + s.play(command) + "\n")
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// story is a desk that is told what to do in words.
type story struct {
	desk
	out   bytes.Buffer
	asked string // the step of which the machine asks the definition
}

// play runs one command and returns what came of it.
func (s *story) play(command string) string {
	s.out.Reset()
	var lines []string
	for line := range strings.SplitSeq(command, "\n") {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	words := strings.Fields(lines[0])
	n := len(s.chain)
	if words[0] == "failover" {
		lost, _ := strconv.Atoi(words[1]) // do says what is wrong with it
		n -= lost
	}
	if words[0] == "lose" {
		n = 0
	}
	err := s.do(words[0], words[1:], lines[1:])
	if s.last.Do.Do == Ask {
		s.asked = s.last.Do.Step
	}
	for i := max(n, 0); i < len(s.chain); i++ {
		fmt.Fprintln(&s.out, show(&s.chain[i]))
	}
	switch {
	case err != nil:
		fmt.Fprintf(&s.out, "error: %v\n", err)
	case s.last.Do.Do != "":
		fmt.Fprintf(&s.out, "> %s\n", s.last.Do)
	}
	s.reduces()
	return s.out.String()
}

// reduces holds V20 of every story at every end: without its bodies the chain folds to the same, and so does what is left of it without records.
func (s *story) reduces() {
	if len(s.chain) == 0 || !s.st.Reduced() {
		return
	}
	chain := slices.Clone(s.chain)
	for i := range chain {
		if _, err := chain[i].Reduce(Salt{1}); err != nil {
			s.t.Errorf("%s: %v", show(&s.chain[i]), err)
		}
	}
	if chain[0].Seq != 1 {
		return
	}
	without, err := Fold(order, chain)
	if err != nil || !without.Alike(s.st) {
		s.t.Errorf("%s: without bodies it folds to %+v, %v", s.out.String(), without, err)
	}
	body, err := json.Marshal(s.st.Remains())
	if err != nil {
		s.t.Fatal(err)
	}
	left, err := Fold(order, []Record{{Seq: 1, Kind: KindRemembered, Version: s.st.Version, Revision: s.st.Revision, Status: s.st.Status, Body: body}})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range s.st.Steps {
		was, is := &s.st.Steps[i], left.Step(s.st.Steps[i].Name)
		id := cmp.Or(was.ExternalID, previousID(was))
		if is == nil || is.Forward.Phase != was.Forward.Phase || is.Undo.Phase != was.Undo.Phase || is.ExternalID != id {
			s.t.Errorf("%s: of step %s is left %+v, of %+v", s.out.String(), was.Name, is, was)
		}
	}
	if mine, its := s.st.given(), left.given(); left.NewestRevision != cmp.Or(s.st.NewestRevision, s.st.Revision) || its.Same() != mine.Same() {
		s.t.Errorf("%s: what is left is %s, heard %q of %q", s.out.String(), body, left.NewestRevision, s.st.NewestRevision)
	}
}

func previousID(ss *StepState) string {
	if ss.Previous == nil {
		return ""
	}
	return ss.Previous.ExternalID
}

// do runs one command:
//
//	define [2]         the definition, one step a line (see structure); or its second version, for what is revised
//	start [revision]   the work begins; among the words: not-before=d
//	until [d]          the definition says until when the step waits: that long from now; or that it does not
//	until fails words… or it fails
//	applies            the condition of the step says that it is done; or
//	applies not        that it is not, or
//	applies fails words… it fails
//	show [document]    the definition says what people decide about; or that no decision is needed
//	approve who document, reject who document
//	                   a person of finance votes on it
//	done [id]          the open attempt succeeds; one second has passed
//	fail class words…  the open attempt ends otherwise: unknown, not-sent, refused, fault. Among the words:
//	                   retry-after=d, shutdown when the process was told to stop, outage when no other work was served
//	lookup answer ids  the lookup answers: found, unfinished, not-found, unclear, several
//	wait [d]           time passes: as long as the machine said, or d
//	crash [over [n]]   the process dies with n other steps in flight; another one looks at the chain (its session is over)
//	busy, free         no send slot is to be had; or one is
//	cancel who why…    a person cancels
//	revise rev [same]  the source has a newer version; it says the same as before
//	gone rev           the source cancelled the object
//	keep who           a person leaves as it stands what the source cancelled
//	failover n         the database forgets the latest n records, and is another one since
//	happened who [id]  a person's resolution on the step in review; and
//	did-not-happen who the other one
//	late step n id     attempt n's success comes after it was closed
//	conflict           the work was started again with another identity
//	max-crashes n      so often a step may be in flight when its process dies
//	invalid            the ledger takes no record of what comes next
//	wake               a person or a program says that it should have moved
//	pause, resume, end-wait, retry who why…  a person holds it, lets it go on, ends its wait,
//	                   has the step at issue tried again
//	lose               the whole ledger is lost
//	adopt rev words…   what stands is put on record; each line says it of one step (see parseEffect), or begins with
//	                   quarantine. Among the words: cancelled, and records=n when it is cut off after n
//	state              shows where the work stands
func (s *story) do(verb string, args, lines []string) (err error) {
	s.last = Decision{}
	switch verb {
	case "define":
		if len(args) > 0 {
			s.next, err = define(order.Saga, 2, strings.Join(lines, "\n"))
			return err
		}
		s.spec, err = define(order.Saga, 1, strings.Join(lines, "\n"))
		return err
	case "start":
		return s.start(args)
	case "until":
		return s.until(args)
	case "applies":
		a, yes := &Asked{Step: s.asked}, len(args) == 0
		if a.Applies = &yes; !yes && args[0] == "fails" {
			a.Error = strings.Join(args[1:], " ")
		}
		return s.try(Event{Asked: a})
	case "show":
		return s.try(Event{Asked: &Asked{Step: s.asked, Shown: &Shown{Document: json.RawMessage(strings.Join(args, "")), Asked: len(args) > 0}}})
	case "approve", "reject":
		s.sigs++
		cast := &Cast{Approve: verb == "approve", Roles: []string{"finance"}, Shown: s.st.digest(json.RawMessage(args[1]))}
		return s.try(Event{Signal: &Signal{ID: s.sigs, At: s.now, Kind: SignalVote, Actor: args[0], Reason: "seen", Resolution: saga.Resolution{Step: s.asked}, Said: Said{Vote: cast}}})
	case "done", "fail":
		s.now = s.now.Add(time.Second)
		o, err := parseOutcome(verb, args)
		if err != nil {
			return err
		}
		return s.try(Event{Outcome: &o})
	case "lookup":
		s.now = s.now.Add(time.Second)
		return s.lookup(Kind(args[0]), args[1:])
	case "wait":
		return s.passes(args)
	case "crash":
		s.over = len(args) > 0
		defer func() { s.over = false }()
		n := 0
		if len(args) > 1 {
			n, err = strconv.Atoi(args[1])
		}
		return errors.Join(err, s.try(Event{Bystanders: n}))
	case "revise":
		version := 1
		if s.next != nil {
			version = s.next.Version
		}
		return s.try(s.news(args[0], version, len(args) > 1))
	case "failover":
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		s.now = s.now.Add(time.Second)
		return s.failover(n)
	case "busy", "free":
		s.busy = verb == "busy"
		return s.try(Event{})
	case "max-crashes":
		s.most, err = strconv.Atoi(args[0])
		return err
	case "invalid":
		return s.try(Event{Invalid: 2})
	case "lose":
		s.chain, s.st, s.tally = nil, &State{ID: order}, tally{}
		return nil
	case "adopt":
		a, most, err := parseAdoption(args, lines)
		if err != nil {
			return err
		}
		return s.adopt(a, most)
	case "state":
		s.state()
		return nil
	default:
		return s.post(verb, args)
	}
}

func (s *story) start(args []string) (err error) {
	at := Start{Input: json.RawMessage(`"3 lines"`)}
	for _, w := range args {
		if d, ok := strings.CutPrefix(w, "not-before="); ok {
			later, err := time.ParseDuration(d)
			if err != nil {
				return err
			}
			at.NotBefore = s.now.Add(later)
		} else {
			at.Revision = w
		}
	}
	return s.try(Event{Start: &at})
}

func (s *story) until(args []string) error {
	asked := Asked{Step: s.asked}
	switch {
	case len(args) > 0 && args[0] == "fails":
		asked.Error = strings.Join(args[1:], " ")
	case len(args) > 0:
		d, err := time.ParseDuration(args[0])
		if err != nil {
			return err
		}
		asked.Until = s.now.Add(d)
	}
	return s.try(Event{Asked: &asked})
}

func (s *story) post(verb string, args []string) error {
	s.sigs++
	sig := Signal{ID: s.sigs, Kind: SignalKind(verb)}
	if len(args) > 0 {
		sig.Actor, sig.Reason = args[0], strings.Join(args[1:], " ")
	}
	switch verb {
	case "happened", "did-not-happen":
		ss, dir := s.st.Issue(s.spec)
		if ss == nil {
			return errors.New("no step is at issue")
		}
		sig.Kind, sig.Reason = SignalResolve, ""
		sig.Resolution = saga.Resolution{Step: ss.Name, Direction: dir, Attempt: ss.effort(dir).Attempts, Happened: verb == "happened"}
		if sig.Happened && len(args) > 1 {
			sig.ExternalID = args[1]
		}
	case "late":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		sig.Kind, sig.Actor, sig.Reason = SignalLate, "", ""
		sig.Resolution = saga.Resolution{Step: args[0], Direction: saga.Forward, Attempt: n, Happened: true, ExternalID: args[2], Output: output(args[2])}
	case "retry", "skip":
		ss, dir := s.st.Issue(s.spec)
		if ss == nil {
			return errors.New("no step is at issue")
		}
		sig.Resolution = saga.Resolution{Step: ss.Name, Direction: dir, Attempt: ss.effort(dir).Attempts}
	case "end-wait":
		sig.Step = s.waiting()
	case "hold", "let-go":
		sig.Kind, sig.Actor, sig.Reason = map[string]SignalKind{"hold": SignalPause, "let-go": SignalResume}[verb], "", ""
		sig.News = News{Revision: args[0]}
	case "undo-from": // a step, at a sub-revision
		sig.Kind, sig.Actor, sig.Reason = SignalCancel, "anna", ""
		sig.Step, sig.News = args[0], News{Revision: args[1]}
	case "gone":
		sig.Kind, sig.Actor, sig.Reason = SignalCancel, "", ""
		sig.News = News{Revision: args[0]}
	case "cancel", "conflict", "wake", "keep", "pause", "resume":
	default:
		return fmt.Errorf("unknown command %q", verb)
	}
	return s.try(Event{Signal: &sig})
}

func parseOutcome(verb string, args []string) (o program.Outcome, err error) {
	if verb == "done" {
		o.Class, o.ExternalID = program.Succeeded, strings.Join(args, "")
		o.Output = output(o.ExternalID)
		return o, nil
	}
	o.Class = saga.Class(args[0])
	var words []string
	for _, w := range args[1:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "retry-after":
			o.RetryAfter, err = time.ParseDuration(value)
		case "shutdown":
			o.Shutdown = true
		case "outage":
			o.Outage = true
		default:
			words = append(words, w)
		}
	}
	o.Error = strings.Join(words, " ")
	return o, err
}

func (s *story) lookup(kind Kind, ids []string) error {
	step := ""
	for i := range s.spec.Steps {
		ss := s.st.Step(s.spec.Steps[i].Name)
		if asksFirst(&s.spec.Steps[i], ss) || ss != nil && (ss.Forward.Phase == InDoubt || ss.Forward.Phase == Refused) {
			step = s.spec.Steps[i].Name
			break
		}
	}
	if step == "" {
		return errors.New("no step is in doubt")
	}
	f := program.Evidence{Step: step, Answer: program.Answer(kind), IDs: ids}
	if kind == KindFound || kind == KindUnfinished || kind == KindOther {
		f.ExternalID, f.Output, f.IDs, f.Error = ids[0], output(ids[0]), nil, strings.Join(ids[1:], " ")
	}
	return s.try(Event{Evidence: &f})
}

func (s *story) passes(args []string) error {
	if len(args) > 0 {
		d, err := time.ParseDuration(args[0])
		if err != nil {
			return err
		}
		s.now = s.now.Add(d)
		return s.try(Event{})
	}
	if err := s.try(Event{}); err != nil || s.last.Do.Do != Wait {
		return err
	}
	s.now = s.last.Do.Until
	return s.try(Event{})
}

// state shows what a person would be shown.
func (s *story) state() {
	fmt.Fprintf(&s.out, "%s%s, %d records", s.st.Status, bracket(string(s.st.Reason)), s.st.Seq)
	if s.st.Revision != "" {
		fmt.Fprintf(&s.out, ", revision %s", s.st.Revision)
	}
	if s.st.PendingRevision != nil {
		fmt.Fprintf(&s.out, ", and %s waits", s.st.PendingRevision.Revision)
	}
	fmt.Fprintln(&s.out)
	if s.st.Status == saga.Review {
		fmt.Fprintf(&s.out, "  because: %s\n", s.st.Note)
	}
	for i := range s.st.Steps {
		ss := &s.st.Steps[i]
		fmt.Fprintf(&s.out, "  %-12s%s after %d", ss.Name, cmp.Or(ss.Forward.Phase, "to be done"), ss.Forward.Attempts)
		if ss.ExternalID != "" {
			fmt.Fprintf(&s.out, ", %s", ss.ExternalID)
		}
		if ss.Previous != nil {
			fmt.Fprintf(&s.out, ", left before: %q", ss.Previous.ExternalID)
		}
		if ss.Unconfirmed {
			s.out.WriteString(", unconfirmed")
		}
		if ss.Undo.Phase != "" {
			fmt.Fprintf(&s.out, "; undo %s after %d", ss.Undo.Phase, ss.Undo.Attempts)
		}
		fmt.Fprintln(&s.out)
	}
	fmt.Fprintf(&s.out, "  next: %s\n", Next(s.spec, s.st))
}

func bracket(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// show is a record as the stories tell it: what was learned; what it arms; where the work stands.
func show(r *Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %s %s", r.Seq, clock(r.At), r.Kind)
	if r.Step != "" {
		fmt.Fprintf(&b, " %s", attempt(r.Step, r.Direction, r.Attempt))
	}
	if r.Revision != "" {
		fmt.Fprintf(&b, " revision %s", r.Revision)
	}
	if r.ExternalID != "" {
		fmt.Fprintf(&b, " = %s", r.ExternalID)
	}
	if r.ErrorClass == program.Interrupted || r.ErrorClass == program.Outage {
		fmt.Fprintf(&b, " (%s)", r.ErrorClass)
	}
	if r.Said() != "" {
		fmt.Fprintf(&b, " %q", r.Said())
	}
	if a := r.Dispatch; a != nil {
		fmt.Fprintf(&b, "; arms %s until %s under %s…", attempt(a.Step, a.Direction, a.Attempt), clock(r.Deadline()), a.Key[:8])
	}
	if !r.Until.IsZero() {
		fmt.Fprintf(&b, "; until %s", clock(r.Until))
	}
	if r.Limit > 0 {
		fmt.Fprintf(&b, "; within %s", r.Limit)
	}
	fmt.Fprintf(&b, "; %s%s", r.Status, bracket(string(r.Reason)))
	if r.Wait > 0 {
		fmt.Fprintf(&b, " until %s", clock(r.Due()))
	}
	return b.String()
}

func attempt(step string, dir saga.Direction, n int) string {
	if n == 0 && dir == saga.Forward {
		return step
	}
	if dir == saga.Undo {
		return fmt.Sprintf("undo of %s, attempt %d", step, n)
	}
	return fmt.Sprintf("%s, attempt %d", step, n)
}

// clock is a time of the first day, or of a later one.
func clock(t time.Time) string {
	if day := int(t.Sub(noon.Add(-12*time.Hour)) / (24 * time.Hour)); day > 0 {
		return fmt.Sprintf("day %d, %s", day+1, t.UTC().Format("15:04:05.999"))
	}
	return t.UTC().Format("15:04:05.999")
}
