package command

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/desk"
)

// never says why a review is never about a kind of step: about one, or about a class of them.
var never = map[string]string{
	"in-doubt: undo": "an undo is repeated under its key, and given up as undo-failed", "in-doubt: approve": noEffect, "in-doubt: time": noEffect,
	"in-doubt: await": "there is no lookup that finds several", "in-doubt: await, or no": "there is no lookup that finds several",
	"undo-failed: sends": "it is about an undo", "undo-failed: answer": noEffect, "undo-failed: approve": noEffect, "undo-failed: time": noEffect,
	"undo-failed: at most once, find, its undo": noUndo,
	"cannot-undo: sends":                        "it is about an undo", "cannot-undo: answer": noEffect, "cannot-undo: approve": noEffect, "cannot-undo: time": noEffect,
	"cannot-undo: at most once, find, its undo": noUndo,
	"after-pivot: undo":                         "an undo is refused as undo-failed", "after-pivot: time": "a time cannot say no",
	"exhausted: undo": "an undo is given up as undo-failed", "exhausted: answer": noPolicy, "exhausted: approve": noPolicy, "exhausted: time": noPolicy,
	"poison: delay": "the program is not asked about it", "poison: at most once, find, its undo": noUndo,
	"deadline: undo":    "what goes back has no deadline",
	"unanswered: sends": noAnswer, "unanswered: undo": noAnswer, "unanswered: time": noAnswer,
	"late-answer: sends": noAnswer, "late-answer: undo": noAnswer, "late-answer: approve": "a vote that comes late is noted", "late-answer: time": noAnswer,
	"late-answer: await, find": likeAwait, "late-answer: await, or no": likeAwait,
	"hung: answer": noAction, "hung: approve": noAction, "hung: time": noAction, "hung: at most once, find, its undo": noUndo,
	"conflict: sends": "it is about an undo", "conflict: answer": noEffect, "conflict: approve": noEffect, "conflict: time": noEffect,
	"conflict: at most once, its undo":     "it is last, so it cannot be missing from a newer version while it stands",
	"paused: at most once, find, its undo": noUndo,
	"waiting: sends":                       noAnswer, "waiting: undo": noAnswer,
}

const (
	noEffect  = "a wait has no effect"
	noUndo    = "it says NoUndo"
	noPolicy  = "a wait has an end, and no policy"
	noAnswer  = "it waits for no answer"
	noAction  = "a wait has no action"
	likeAwait = "it is as await"
)

// class is what a kind has in common with others.
func class(kind string) string {
	switch {
	case strings.HasSuffix(kind, ", its undo"):
		return "undo"
	case strings.HasPrefix(kind, "await"):
		return "answer"
	case kind == "delay" || kind == "until":
		return "time"
	case kind == "approve":
		return kind
	}
	return "sends"
}

// written compares what reviews there are with what is on file.
func (tb *wayTable) written() {
	all := slices.Sorted(maps.Keys(waitKinds))
	for kind := range kinds {
		all = append(all, kind, kind+", its undo")
	}
	slices.Sort(all)
	var b strings.Builder
	for _, reason := range append(slices.Clone(desk.Reasons), "paused", "waiting") {
		if len(tb.seen[reason]) == 0 {
			tb.t.Errorf("no case of the table comes to %q", reason)
		}
		fmt.Fprintf(&b, "%s\n", reason)
		for _, kind := range all {
			word := cmp.Or(never[reason+": "+kind], never[reason+": "+class(kind)])
			switch {
			case tb.seen[reason][kind]:
				fmt.Fprintf(&b, "  %s\n", kind)
			case word == "":
				tb.t.Errorf("no case comes to %s about %q, and nothing says why", reason, kind)
			default:
				fmt.Fprintf(&b, "  %s: never, %s\n", kind, word)
			}
		}
	}
	const file = "testdata/ways.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			tb.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != b.String() {
		tb.t.Errorf("%s is out of date (%v): go test ./internal/command -run TestEveryReview -update", file, err)
	}
	tb.t.Logf("%d cases", tb.cases)
}
