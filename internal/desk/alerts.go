package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// An alert tells people outside that something needs them, and later that it is over. It is an instance of a saga of ours: on record before
// it is sent, sent again under its id where that failed, and sent to a destination of its own.

// AlertSaga is the saga whose instances are alerts, AlertsTo the destination that they are sent to.
const (
	AlertSaga = "amends-alert"
	AlertsTo  = "amends-alerts"
)

// alertOver is the message that ends an alert.
const alertOver = "amends-alert-over"

// Alert is one message: that something needs a person, or that it is over.
type Alert struct {
	ID    string    `json:"id"`    // of the message: one that comes twice has the same
	Alert string    `json:"alert"` // the work id of the alert: that it is over has the same
	About string    `json:"about"` // what it is about, the same each time it comes
	Kind  string    `json:"kind"`  // review, job, difference, approval, duplicates, refused, test, or the kind of a finding of amends status
	Words string    `json:"words"`
	Next  string    `json:"next"`           // what to type, or to do
	Link  string    `json:"link,omitempty"` // a page of the console
	Count int       `json:"count"`
	At    time.Time `json:"at"`             // since when
	Over  bool      `json:"over,omitempty"` // it is over
}

// alerts are what needs people, each thing once.
type alerts struct {
	at      time.Time
	all     []Alert
	lasts   int      // so many runs in a row find a difference before it counts
	partial []string // what begins so was not looked at to its end
}

// add notes something. What is the same thing is one, and says what was said first.
func (a *alerts) add(about, kind, link, next, words string, count int) {
	if one := a.find(about); one != nil {
		one.Count += count
		return
	}
	a.all = append(a.all, Alert{About: about, Kind: kind, Words: words, Next: next, Link: link, Count: count, At: a.at.UTC()})
}

func (a *alerts) find(about string) *Alert {
	return First(a.all, func(one *Alert) bool { return one.About == about })
}

// Needs reads what needs a person now. A difference counts when so many runs in a row have found it. What begins with one of partial was not
// looked at to its end: it may be there without being told of. What cannot be read, by the error, hides nothing else.
func (d *Desk) Needs(ctx context.Context, lasts int) (all []Alert, partial []string, err error) {
	a := &alerts{at: d.now(), lasts: lasts}
	for _, of := range []struct {
		kind string
		read func(context.Context, *alerts) error
	}{
		{"finding/", d.findingsNeed}, {"review/", d.reviewsNeed}, {"job/", d.jobsNeed}, {a.differences(), d.driftsNeed}, {"approval/", d.approvalsNeed},
		{"duplicates/", d.duplicatesNeed}, {"refused/", d.refusedNeed},
	} {
		if failed := of.read(ctx, a); failed != nil {
			a.partial, err = append(a.partial, of.kind), errors.Join(err, failed)
		}
	}
	return a.all, a.partial, err
}

// differences is how those begin that last so long: a program for which they last longer has alerts of its own.
func (a *alerts) differences() string { return "difference/" + strconv.Itoa(a.lasts) + "/" }

func (d *Desk) findingsNeed(ctx context.Context, a *alerts) error {
	s, err := d.Status(ctx, &StatusIn{Still: Duration(finding.Still)})
	if err != nil {
		return err
	}
	for _, f := range s.Findings {
		if f.About != AlertsTo { // who is told of everything is not told that telling fails
			a.add("finding/"+f.Kind+With("/", f.About), f.Kind, "/processes", f.Next, f.Words, 1)
		}
	}
	return nil
}

// mostReviewed is how many works in review are looked at: their heads alone.
const mostReviewed = 20_000

// reviewsNeed is what is in review, by step and reason. Ten times as many are another alert.
func (d *Desk) reviewsNeed(ctx context.Context, a *alerts) error {
	heads, err := ledger.First(ctx, d.db, ledger.Filter{Status: saga.Review, Limit: mostReviewed})
	if err != nil {
		return err
	}
	if len(heads) == mostReviewed {
		a.partial = append(a.partial, "review/")
	}
	causes, sums := []ledger.Instance{}, map[string]int{} // the first of each, and how many there are
	for i := range heads {
		h := &heads[i]
		if sums[causeOf(h)]++; sums[causeOf(h)] == 1 { // an alert that cannot be told, too: one tells of all of them, and of itself
			causes = append(causes, *h)
		}
	}
	k, err := d.whoKnows(ctx, false)
	if err != nil {
		return err
	}
	failed, err := d.errorsOf(ctx, k, causes)
	if err != nil {
		return err
	}
	for i := range causes {
		h := &causes[i]
		n, page := sums[causeOf(h)], "/works?"+url.Values{"status": {string(saga.Review)}, "saga": {h.ID.Saga}, "step": {h.Step}, "reason": {string(h.Reason)}}.Encode()
		words := fmt.Sprintf("%s of %s in review: %s%s%s", Counted(n, "work", "works"), h.ID.Saga, h.Reason, With(", step ", h.Step), With(": ", failed[h.ID].alike))
		for least := 1; least <= n; least *= 10 {
			a.add("review/"+causeOf(h)+When(least > 1, "/"+strconv.Itoa(least)), "review", page, "amends list --group --saga "+quote(h.ID.Saga)+" --reason "+string(h.Reason)+d.flag, words, n)
		}
	}
	return nil
}

func causeOf(h *ledger.Instance) string { return h.ID.Saga + "/" + h.Step + "/" + string(h.Reason) }

func (d *Desk) jobsNeed(ctx context.Context, a *alerts) error {
	b, err := d.Jobs(ctx, &JobsIn{})
	if err != nil {
		return err
	}
	for i := range b.Items {
		j := &b.Items[i]
		latest, err := d.latestRun(ctx, j.Job)
		if err != nil {
			return err
		}
		if latest.Result == schedule.Refused {
			j.Alarm = joined(j.Alarm, "its latest run left to a person what it would have done"+With(": ", latest.Note))
		}
		if j.Alarm != "" {
			a.add("job/"+j.Job, "job", "/jobs", "amends reconcile runs "+quote(j.Job)+d.flag, "job "+j.Job+": "+j.Alarm, 1)
		}
	}
	return nil
}

// latestRun is the latest run of a job that came to a result of its own: one that goes on, or was left out, says nothing of what the one before said.
func (d *Desk) latestRun(ctx context.Context, job string) (schedule.RunRow, error) {
	for f := (schedule.RunFilter{Job: job, Limit: 100}); ; {
		page, err := d.db.Runs(ctx, f)
		if err != nil {
			return schedule.RunRow{}, err
		}
		if r := First(page, func(r *schedule.RunRow) bool { return r.Result != "" && r.Result != schedule.Skipped }); r != nil {
			return *r, nil
		}
		if len(page) < f.Limit {
			return schedule.RunRow{}, nil
		}
		f.Before = &page[len(page)-1]
	}
}

func (d *Desk) driftsNeed(ctx context.Context, a *alerts) error {
	in := new(DriftIn)
	in.Defaults()
	in.Times, in.N = a.lasts, ledger.MaxBacklog
	drifts, err := d.Drifts(ctx, in)
	if err != nil {
		return err
	}
	if drifts.Next != nil {
		a.partial = append(a.partial, a.differences())
	}
	for i := range drifts.Items {
		f := &drifts.Items[i]
		a.add(a.differences()+f.Job+"/"+string(f.Class), "difference", "/findings?"+url.Values{"job": {f.Job}, "class": {string(f.Class)}}.Encode(),
			"amends drift list --job "+quote(f.Job)+" --class "+string(f.Class)+d.flag,
			fmt.Sprintf("job %s found a difference %d times in a row: %s, %s", f.Job, f.Runs, f.Key, f.Class), 1)
	}
	return nil
}

// approvalsNeed is what people have not decided with three quarters of the time gone, by step. Twice as many are another alert.
func (d *Desk) approvalsNeed(ctx context.Context, a *alerts) error {
	all, err := d.Approvals(ctx, nil)
	if err != nil {
		return err
	}
	near := slices.DeleteFunc(all.Items, func(p Approval) bool {
		return p.Until == nil || At(p.Until).Sub(a.at) >= At(p.Until).Sub(At(p.Since))/4
	})
	slices.SortFunc(near, func(a, b Approval) int { return At(a.Until).Compare(At(b.Until)) })
	for i := range near {
		p := &near[i]
		n := number(near, func(o *Approval) bool { return o.Saga == p.Saga && o.Step == p.Step })
		words := fmt.Sprintf("%s to be decided at step %s of %s; without a decision of %s %s is rejected at %s", Counted(n, "work is", "works are"),
			p.Step, p.Saga, strings.Join(p.Roles, ", "), p.WorkID, iso(At(p.Until)))
		for least := 1; least <= n; least *= 2 {
			if about := "approval/" + p.Saga + "/" + p.Step + When(least > 1, "/"+strconv.Itoa(least)); a.find(about) == nil {
				a.add(about, "approval", "/", "amends approvals"+d.flag, words, n)
			}
		}
	}
	return nil
}

// How many duplicates of a source, or refused webhooks, in a day are more than usual: so many, and so many times the mean of the week before.
const manyBlocked, timesUsual = 100, 10

func (d *Desk) duplicatesNeed(ctx context.Context, a *alerts) error {
	days, _, err := d.blockedDays(ctx, ledger.DayOf(a.at).AddDate(0, 0, -weekBefore))
	a.jumps(days, "duplicates", "/duplicates", "amends duplicates --since 9d"+d.flag, "duplicates from %s were blocked on %s by %s")
	return err
}

func (d *Desk) refusedNeed(ctx context.Context, a *alerts) error {
	_, days, err := d.blockedDays(ctx, ledger.DayOf(a.at).AddDate(0, 0, -weekBefore))
	days = slices.DeleteFunc(days, func(day ledger.BlockedDay) bool { return day.Source == "" }) // a stranger tries paths that there are not
	for i := range days {
		days[i].By = intake.Refusal(days[i].By)
	}
	a.jumps(days, "refused", "/inbox", "amends inbox counts"+d.flag, "webhooks for %s were refused on %s (%s)")
	return err
}

// weekBefore is how many days before today the week begins that yesterday is compared with.
const weekBefore = 8

// jumps adds of what source and by what there were more than usual today, or yesterday: what goes on over midnight is told once.
func (a *alerts) jumps(days []ledger.BlockedDay, kind, link, next, words string) {
	ago := map[ledger.BlockedDay]*[weekBefore + 1]int64{} // how many, by how many days ago
	for _, day := range days {
		of := ledger.BlockedDay{By: day.By, Source: day.Source}
		ago[of] = cmp.Or(ago[of], new([weekBefore + 1]int64))
		ago[of][max(0, int(ledger.DayOf(a.at).Sub(day.Day).Hours()/24))] += day.Count
	}
	for of, all := range ago {
		for day := range 2 {
			n, usual := all[day], int64(0)
			for _, count := range all[day+1 : day+8] {
				usual += count
			}
			if n >= manyBlocked && n > timesUsual*usual/7 {
				name := program.Clean(strings.Trim(strconv.Quote(of.Source), `"`), 200) // what it is about is a work id, and a source any text
				a.add(kind+"/"+of.By+With("/", name), kind, link, next, fmt.Sprintf("%d "+words+", and %d a day in the week before", n,
					cmp.Or(name, "an unnamed source"), ledger.DayOf(a.at).AddDate(0, 0, -day).Format(time.DateOnly), of.By, usual/7), int(n))
				break
			}
		}
	}
}

// AlertProgram is the program of [AlertSaga]: it sends that something needs a person, waits until it is over, and sends that.
func AlertProgram(send func(context.Context, Alert) error) (saga.Program, error) {
	const stays = "what was told stays told"
	// told has every failure tried again, a refusal, too: what is wrong at the receiver is mended there, and the alert is still to be told.
	told := func(over bool) func(context.Context, saga.Call[Alert]) (struct{}, error) {
		return func(ctx context.Context, c saga.Call[Alert]) (none struct{}, err error) {
			if err = saga.Sending(ctx); err != nil {
				return none, err
			}
			a := c.Input
			a.ID, a.Alert, a.Over = c.Key, c.Work, over
			err = send(ctx, a)
			if class, _ := saga.Classify(err); err != nil && class == program.Refused {
				err = errors.New(err.Error())
			}
			return none, err
		}
	}
	step := func(name string, over bool, within time.Duration) saga.Step[Alert] {
		return saga.Do(name, told(over)).To(AlertsTo).Idempotent().NoID().EachRun().NoUndo(stays).
			Retry(saga.Retry{Attempts: 1_000_000, Within: within, Max: 10 * time.Minute, Compensate: true})
	}
	over := func(saga.Call[Alert], saga.Message) (none struct{}, err error) { return none, nil }
	return saga.Define(AlertSaga, 1,
		saga.Identity(func(a Alert) any { return a.About }), // of two processes that find it, one's words count
		step("tell", false, 7*24*time.Hour),
		saga.Await("over", over).On(alertOver, func(c saga.Call[Alert]) string { return c.Work }).NoID().EachRun().NoUndo(stays).Within(saga.MaxWait, saga.Compensate),
		step("close", true, 10*365*24*time.Hour),
		saga.Retain[Alert](saga.Retention{Bodies: 90 * 24 * time.Hour, Records: 400 * 24 * time.Hour}), // its number comes once: the key stays
	)
}

// Opened are the alerts that are not over yet, by what they are about. One that has been said to be over counts until that is told.
func (d *Desk) Opened(ctx context.Context) (map[string][]string, error) {
	open := map[string][]string{}
	for _, status := range live {
		heads, err := ledger.First(ctx, d.db, ledger.Filter{Saga: AlertSaga, Status: status, Limit: ledger.MaxBacklog})
		if err != nil {
			return nil, err
		}
		for i := range heads {
			work := heads[i].ID.Work
			open[aboutOf(work)] = append(open[aboutOf(work)], work)
		}
	}
	return open, nil
}

// aboutOf is what an alert is about, by its work id.
func aboutOf(work string) string { return work[:max(strings.LastIndex(work, "@"), 0)] }

// Tell begins an alert, unless one about the same thing is open. Its number is one more than the last one's: of several processes that find it
// one tells it.
func (d *Desk) Tell(ctx context.Context, c *coordinator.Coordinator, a Alert, o *saga.StartOptions) (work string, err error) {
	before, err := ledger.First(ctx, d.db, ledger.Filter{Saga: AlertSaga, Prefix: a.About + "@", Limit: 100_000})
	if err != nil {
		return "", err
	}
	before = slices.DeleteFunc(before, func(h ledger.Instance) bool { return aboutOf(h.ID.Work) != a.About })
	if open := First(before, func(h *ledger.Instance) bool { return !h.Status.Terminal() }); open != nil {
		return open.ID.Work, nil
	}
	last := 0 // the first ones may have gone by retention
	for i := range before {
		if n, err := strconv.Atoi(before[i].ID.Work[len(a.About)+1:]); err == nil {
			last = max(last, n)
		}
	}
	work = a.About + "@" + strconv.Itoa(last+1)
	_, err = c.Start(ctx, AlertSaga, work, a, o)
	return work, err
}

// Over says of an alert that it is over. Said again, it is the same.
func (d *Desk) Over(ctx context.Context, work string) error {
	_, err := d.op.Deliver(ctx, saga.Message{Name: alertOver, Key: work, ID: work, Body: []byte("null")})
	return err
}

// TestAlertIn says who tries the alerts.
type TestAlertIn struct{ By }

// AlertTried is a test that was stored. A process that sends alerts sends it, and a little later that it is over.
type AlertTried struct {
	WorkID string `json:"workId"`
}

// TestAlert makes an alert that says it is a test.
func (d *Desk) TestAlert(ctx context.Context, in *TestAlertIn) (*AlertTried, error) {
	if err := Usage("try: amends alerts test --help", in.faults()...); err != nil {
		return nil, err
	}
	k, err := d.whoKnows(ctx, false)
	if err != nil {
		return nil, err
	}
	if len(k.of(AlertSaga)) == 0 {
		return nil, &Failure{Code: Conflict, What: "no process runs alerts, so none would send it", Stands: "nothing was stored", Next: "see that one does: package alert, which runs beside the coordinator"}
	}
	c, err := silent(d)
	if err != nil {
		return nil, err
	}
	p, err := AlertProgram(func(context.Context, Alert) error { return nil })
	if err != nil {
		return nil, err
	}
	if err := c.Register(ctx, p); err != nil {
		return nil, err
	}
	work, err := d.Tell(ctx, c, Alert{About: "test", Kind: "test", Words: "this is a test, and that it is over is told next: " + in.Reason, Next: "nothing", Link: "/", Count: 1, At: d.now().UTC()},
		&saga.StartOptions{Starter: in.Actor, Cause: in.Reason})
	return &AlertTried{work}, err
}

// silent is a coordinator that begins instances, and runs none.
func silent(d *Desk) (*coordinator.Coordinator, error) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return coordinator.New(d.db, &coordinator.Options{Log: log})
}

// AlertShown is an alert that is not over yet, or what needs a person and is not told yet.
type AlertShown struct {
	Alert
	Status saga.Status `json:"status"` // waiting: it was told; "": it is not on record; else it is being told, or that it is over
}

// Since is when it was found.
func (a *AlertShown) Since() *time.Time { return utc(a.At) }

// Told says whether it was told.
func (a *AlertShown) Told() string {
	return Either(a.Status == "", "no", Either(a.Status == saga.Waiting, "yes", "sending"))
}

// Alerts lists what needs a person, and whether that was told, and what was told and is not known to be over.
func (d *Desk) Alerts(ctx context.Context, _ *Nothing) (*All[AlertShown], error) {
	needs, _, err := d.Needs(ctx, DifferenceLasts)
	if err != nil {
		return nil, err
	}
	open, err := d.Opened(ctx)
	if err != nil {
		return nil, err
	}
	out := &All[AlertShown]{Items: []AlertShown{}}
	for i := range needs {
		if len(open[needs[i].About]) == 0 {
			out.Items = append(out.Items, AlertShown{Alert: needs[i]})
		}
	}
	for _, works := range open {
		for _, work := range works {
			v, err := d.look(ctx, saga.ID{Saga: AlertSaga, Work: work})
			if errors.Is(err, ledger.ErrNotFound) { // it has gone meanwhile
				continue
			}
			one := AlertShown{Alert: Alert{About: aboutOf(work)}}
			if why, is := unread(err); is {
				one.Words = why
			} else if err != nil {
				return nil, err
			} else if one.Status = v.state.Status; json.Unmarshal(v.state.Input, &one.Alert) != nil { // it is sealed, and there is no key
				one.Words = "its text cannot be read"
			}
			one.Alert.Alert = work
			out.Items = append(out.Items, one)
		}
	}
	slices.SortStableFunc(out.Items, func(a, b AlertShown) int { return cmp.Compare(a.About, b.About) })
	return out, nil
}

// DifferenceLasts is how many runs in a row find a difference before it is an alert, where nothing else is said.
const DifferenceLasts = 3
