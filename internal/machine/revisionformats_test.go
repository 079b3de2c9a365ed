package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What revisions and fail-overs add to the formats. The hashes and keys were computed by a separate
// program (Python's hashlib over the documented layouts), as those of formats_test.go.

func TestRevisionRecordsAreAFormat(t *testing.T) {
	t.Parallel()
	counting := Hash{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	for _, c := range []struct {
		r    Record
		want string
	}{
		{Record{
			Seq: 4, Session: 9, Kind: KindHeard, Version: 3, Revision: "2026-03-01T12:00:00Z", Body: json.RawMessage(`"4 lines"`),
			Note: "the source has a newer version", Actor: "shop", Why: "webhook evt_1", Signals: []int64{12}, Status: saga.Retrying, Wait: 1500 * time.Millisecond,
		}, "d80f79268a1d0658e9cd98e7f404b648"},
		{Record{
			Seq: 4, Session: 9, Kind: KindHeard, Revision: "18", Note: "the source cancelled it", Signals: []int64{12},
			Status: saga.Review, Reason: saga.ReasonConflict,
		}, "9dddf279bcea54933b9f96681aea8baa"},
		{Record{
			Seq: 5, Session: 9, Kind: KindRevised, Version: 3, Revision: "1/18", Body: json.RawMessage(`{"input":"4 lines","keptSteps":["receipt"]}`),
			Signals: []int64{12}, Status: saga.Running, Dispatch: &Dispatch{Step: "customer", Direction: saga.Forward, Attempt: 2, Key: "am-k2", Budget: 30 * time.Second},
		}, "27c90b38fbde12e30bd54f88497632b2"},
		{Record{
			Seq: 5, Session: 9, Kind: KindDispatched, Status: saga.Running,
			Dispatch: &Dispatch{Step: "submit", Direction: saga.Forward, Attempt: 1, Key: "am-k", Budget: 30 * time.Second, SecretID: "5ec1d0"},
		}, "e702d6e5bf7c1d1e653a3b4ce012939e"},
		{Record{
			Seq: 6, Session: 9, Kind: KindForgotten, Body: json.RawMessage(`[{"step":"receipt","key":"am-k3","budget":"30s"}]`),
			Note: "gone back", Status: saga.Running,
		}, "32c1e4d68edae45421ca637fd88f80eb"},
	} {
		if got := c.r.Sum(order, salt, counting).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.r.Kind, got, c.want)
		}
	}
}

// The key of a revision names it as the source does, so that a rebuilt ledger derives the same one.
func TestRevisionKeysAreAFormat(t *testing.T) {
	t.Parallel()
	for revision, want := range map[string][2]string{
		"2":                    {"am-jBpKJuASIY5NuHArsMcHes9IpPok0o1d", "am-MUlFn1ttYS2mQJFLhVa-aKPMp1nWEnkt"},
		"2026-03-01T12:00:00Z": {"am-Oy8tIfys84AWoLG1Fc6GVDkVMOhjp86x", "am-xLq1YPZTYvAsjFHoLDhEaFucr4DU32Lx"},
		"1/18":                 {"am-ak2i4H-F1PI9vNGDWts-_oTEIfK2pUNN", "am-aEn1nbCPA1JbQrewU_bU7hBYjmeRkakO"},
	} {
		root := RootKey(order.Saga, order.Work, revision)
		if step := StepKey(root, "invoice", saga.Forward, 0); root != want[0] || step != want[1] {
			t.Errorf("revision %s: %s and %s, want %s", revision, root, step, want)
		}
	}
}

// The words of records and signals stand in ledgers. They never change.
func TestWordsAreAFormat(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		fmt.Sprintln(KindStarted, KindDispatched, KindDone, KindNotSent, KindRefused, KindUnknown, KindLost, KindFault):                                              "started dispatched done not-sent refused unknown lost fault",
		fmt.Sprintln(KindFound, KindUnfinished, KindNotFound, KindUnclear, KindSeveral, KindResolved, KindCancelled):                                                 "found unfinished not-found unclear several resolved cancelled",
		fmt.Sprintln(KindNoted, KindParked, KindPaused, KindResumed, KindRetried, KindSkipped):                                                                       "noted sent-to-review paused resumed retried skipped",
		fmt.Sprintln(KindWaiting, KindOver, KindOverdue, saga.Waiting, saga.ReasonDeadline, Waiting, SignalEndWait):                                                  "wait-began wait-over deadline-passed waiting deadline waiting end-wait",
		fmt.Sprintln(KindAnswered, KindAnswerKept, KindAnsweredNo, KindUnanswered, KindExtended, saga.ReasonUnanswered, saga.ReasonLate, SignalAnswer, SignalExtend): "answered answer-kept answered-no unanswered wait-extended unanswered late-answer answer extend",
		fmt.Sprintln(KindOpened, KindVoted, KindApproved, KindRejected, SignalVote):                                                                                  "approval-began voted approved rejected vote",
		fmt.Sprintln(KindHeard, KindRevised, KindForgotten, KindAdopted):                                                                                             "revision-received revised forgotten adopted",
		fmt.Sprintln(saga.Running, saga.Retrying, saga.Compensating, saga.Review, saga.Paused, saga.Adopting, saga.Completed, saga.Compensated):                      "running retrying compensating review paused adopting completed compensated",
		fmt.Sprintln(saga.ReasonInDoubt, saga.ReasonUndoFailed, saga.ReasonAfterPivot, saga.ReasonExhausted, saga.ReasonPoison, saga.ReasonConflict):                 "in-doubt undo-failed after-pivot exhausted poison conflict",
		fmt.Sprintln(Ready, Started, InDoubt, Done, Refused, Skipped, saga.Forward, saga.Undo):                                                                       "ready started in-doubt done refused skipped forward undo",
		fmt.Sprintln(saga.Unsent, saga.Refused, saga.Unknown, saga.Fault, program.Interrupted, program.Outage):                                                       "not-sent refused unknown fault stopped outage",
		fmt.Sprintln(SignalCancel, SignalResolve, SignalConflict, SignalLate, SignalWake, SignalRevise):                                                              "cancel resolve conflict late-answer wake revise",
		fmt.Sprintln(SignalKeep, SignalPause, SignalResume, SignalRetry, SignalSkip):                                                                                 "keep pause resume retry skip",
	} {
		if got := strings.Join(strings.Fields(words), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What a signal says is stored as it is here.
func TestSignalsAreAFormat(t *testing.T) {
	t.Parallel()
	news := Signal{Kind: SignalRevise, News: News{Revision: "2", Version: 3, Input: json.RawMessage(`"4 lines"`)}}
	if got, want := string(dump(t, news.News)), `{"revision":"2","version":3,"input":"4 lines"}`; got != want {
		t.Errorf("news are %s, want %s", got, want)
	}
	late := saga.Resolution{Step: "invoice", Direction: saga.Forward, Attempt: 2, StepKey: "am-k", Happened: true, ExternalID: "inv_1", Output: output("inv_1")}
	want := `{"step":"invoice","direction":"forward","attempt":2,"stepKey":"am-k","happened":true,"externalId":"inv_1","output":{"id":"inv_1"}}`
	if got := string(dump(t, late)); got != want {
		t.Errorf("a late answer is %s, want %s", got, want)
	}
}

// The bodies that the machine writes are the ones that the fold of every later version must read.
func TestRevisionBodiesAreAFormat(t *testing.T) {
	t.Parallel()
	bodies := func(d *desk) (got []string) {
		for i := range d.chain {
			switch r := &d.chain[i]; r.Kind { //nolint:exhaustive // only these have such a body
			case KindHeard, KindRevised, KindForgotten:
				got = append(got, string(r.Kind)+" "+string(r.Body))
			}
		}
		return got
	}
	d := outgrown(t, strings.Replace(orderToInvoice, "receipt", "letter find\nreceipt", 1), orderToInvoice).fail(saga.Unknown).revise("3").gone("4").revise("5").due().succeed("c")
	want := []string{
		`revised {"input":"as of 2","keptSteps":["receipt"]}`, `revision-received "as of 3"`, `revision-received `, `revision-received "as of 5"`, `revised {"keptSteps":["receipt"]}`,
	}
	if got := bodies(d); !slices.Equal(got, want) {
		t.Errorf("bodies\n%q\nwant\n%q", got, want)
	}
	d = begin(t, "a idempotent undo timeout=10s\nb find undo").succeed("1").lose(1)
	root := RootKey(order.Saga, order.Work, "")
	want = []string{`forgotten [{"step":"a","key":"` + StepKey(root, "a", saga.Forward, 0) + `","budget":"10s"},` +
		`{"step":"b","key":"` + StepKey(root, "b", saga.Forward, 0) + `","budget":"30s"}]`}
	if got := bodies(d); !slices.Equal(got, want) {
		t.Errorf("bodies\n%q\nwant\n%q", got, want)
	}
}

// The summary of a work in the middle of revisions. Its JSON is stable.
func TestRevisionSummaryIsAFormat(t *testing.T) {
	t.Parallel()
	d := beginAt(t, "invoice find undo\nreceipt at-most-once no-undo").through().revise("2").fail(saga.Unknown).revise("3")
	const want = `{"workId":"shop:order:10492","saga":"order-to-invoice","version":1,"idempotencyKey":"am-jBpKJuASIY5NuHArsMcHes9IpPok0o1d",` +
		`"status":"retrying","reason":"","revision":"2","newestRevision":"3","pendingRevision":"3",` +
		`"input":{"sha256":"0bc4901e2976c7f99e6bc602c87f7a422613bda5c7b410ce9b546d0b9d037573","bytes":9},` +
		`"steps":{"invoice":{"done":false,"status":"in-doubt","externalId":"invoice-1","attempts":2,"error":"it failed: unknown",` +
		`"key":"am-MUlFn1ttYS2mQJFLhVa-aKPMp1nWEnkt","repeat":"find"},` +
		`"receipt":{"done":true,"status":"done","externalId":"receipt-1","attempts":1,"error":"","key":"am-Fvfyx","repeat":"at-most-once","evidence":"done"}},` +
		`"order":["invoice","receipt"],` +
		`"next":"It goes on by itself at 2026-03-01T12:01:00Z. Nothing to do; to have it tried now, retry it. To give it up, cancel it.",` +
		`"startedAt":"2026-03-01T12:00:00Z","updatedAt":"2026-03-01T12:00:00Z","dueAt":"2026-03-01T12:01:00Z"}`
	s := Summarize(d.spec, d.st)
	r := s.Steps["receipt"]
	r.Key = r.Key[:8]
	s.Steps["receipt"] = r
	if got := string(dump(t, s)); got != want {
		t.Errorf("the summary is\n%s\nwant\n%s", got, want)
	}
	if s.Steps["invoice"].Done {
		t.Error("a step that is to be done anew has a result")
	}
}
