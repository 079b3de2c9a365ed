package reconcile

import (
	"fmt"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/reconcile/schedule"
)

// Report is what came of a run, for the runs table and for people.
type Report struct {
	Job     string          `json:"job"`
	Plan    string          `json:"plan,omitempty"` // its id
	Result  schedule.Result `json:"result"`
	Message string          `json:"message,omitempty"` // why it is not ok, or what is left to whom

	Seen         int64 `json:"seen"`         // keys that any side has
	Planned      int64 `json:"planned"`      // actions in the plan
	Applied      int64 `json:"applied"`      // of those, done
	Superseded   int64 `json:"superseded"`   // it was not so any more, and nothing was done
	OverLimit    int64 `json:"overLimit"`    // over a bound
	Failed       int64 `json:"failed"`       // tried in vain, or not looked at
	NeedsReview  int64 `json:"needsReview"`  // for a person to decide
	NotAttempted int64 `json:"notAttempted"` // not tried: the breaker, a first action that came back wrong, a pause

	short []string // what the plan could not take into account
}

// conclude finds the result in the counts, and puts words to it.
func (r *Report) conclude(why ...string) {
	say := func(n int64, what string) {
		if n > 0 {
			why = append(why, fmt.Sprintf("%d %s", n, what))
		}
	}
	say(r.OverLimit, "withheld until the plan is approved")
	say(r.Failed, "failed")
	say(r.NotAttempted, "left for the next run")
	say(r.NeedsReview, "for a person to decide")
	switch {
	case r.Result != "":
	case r.OverLimit > 0:
		r.Result = schedule.Refused
	case r.Failed > 0 || r.NotAttempted > 0:
		r.Result = schedule.Partial
	default:
		r.Result = schedule.OK
	}
	r.Message = strings.Join(why, "; ")
}

// tell logs what came of a run, in one line. Its error is for the caller to log.
func (r *Reconciler) tell(what string, rep *Report) {
	log := r.log.WithFields(logrus.Fields{
		"job": rep.Job, "plan": rep.Plan, "result": string(rep.Result), "seen": rep.Seen, "planned": rep.Planned, "applied": rep.Applied,
		"superseded": rep.Superseded, "withheld": rep.OverLimit, "failed": rep.Failed, "left": rep.NotAttempted, "person": rep.NeedsReview, "words": rep.Message,
	})
	if rep.Result == schedule.OK {
		log.Info(what)
	} else {
		log.Warn(what)
	}
}

// follow adds what the plan behind an apply could not take into account.
func (r *Report) follow(plan *Report) {
	why := plan.short
	if len(why) == 0 {
		return
	}
	r.Failed += plan.Failed
	if r.Result == schedule.OK {
		r.Result = schedule.Partial
	}
	if r.Message != "" {
		why = append(why, r.Message)
	}
	r.Message = strings.Join(why, "; ")
}
