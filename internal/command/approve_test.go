package command

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
)

// What waits for people is listed; approve and reject show it first, and vote on just what they showed, as an admin.
func TestApprovals(t *testing.T) {
	t.Parallel()
	d := newCounter(t)
	act := func(event, call) (made, error) { return made{"m_1"}, nil }
	pay, err := saga.Define("pay", 1, saga.Do("book", act).Idempotent().NoUndo("a test"),
		saga.Approve[shopOrder]("approved").By("finance").Votes(2).NotStarter().Within(24*time.Hour).About(func(saga.Call[shopOrder]) saga.About {
			return saga.About{Title: "Pay Otto", Amount: "EUR 12.00", Fields: []saga.Field{{Name: "account", Value: "4711"}}}
		}),
		saga.Do("charge", act).Idempotent().NoUndo("a test"))
	if err != nil {
		t.Fatal(err)
	}
	d.while(func(ctx context.Context, c *coordinator.Coordinator) error {
		ends := d.ends
		ends(exitDone, "nothing waits for a decision", "approvals")
		for _, work := range []string{"w1", "w2"} {
			if _, err := c.Start(ctx, "pay", work, shopOrder{}, &saga.StartOptions{Starter: "sam"}); err != nil {
				return err
			}
			if err := at(ctx, c, "pay", work, saga.Waiting); err != nil {
				return err
			}
		}
		ends(exitDone, "0 of 2", "approvals")
		ends(exitDone, "w2", "list", "--waiting", "approval")
		ends(exitUsage, "takes no work", "list", "--waiting", "w1")
		ends(exitDone, "for approval by finance", "list", "--waiting")
		ends(exitDone, `"votesNeeded": 2`, "approvals", "-o", "json")
		ends(exitDone, "amends approve w1", "show", "w1")
		ends(exitDone, "approval by finance (0 of 2)", "show", "w1")
		ends(exitDone, "started by sam", "show", "w1")
		ends(exitDone, "title     Pay Otto\namount    EUR 12.00\nfield     account: 4711\n", "show", "w1")
		ends(exitDone, "title     Pay Otto\n", "approve", "w1")
		ends(exitDone, `"amount": "EUR 12.00"`, "show", "w1", "-o", "json")
		ends(exitConflict, "people decide", "complete", "w1", "--body", "{}", "--reason", "r")
		ends(exitConflict, "waits for no time", "wake", "w1", "--reason", "r")
		ends(exitDone, "waits until", "extend", "w1", "--by", "72h", "--reason", "r")
		said := ends(exitDone, "nothing was stored", "approve", "w1")
		shown := regexp.MustCompile(`--shown ([0-9a-f]+)`).FindStringSubmatch(said)
		if shown == nil || !strings.Contains(said, `"workId": "w1"`) {
			t.Fatalf("it shows\n%s", said)
		}
		ends(exitUsage, "--reason", "approve", "w1", "--shown", shown[1])
		ends(exitConflict, "look at it again", "approve", "w1", "--shown", "f00d", "--reason", "r")
		ends(exitConflict, "another has to decide", "approve", "w1", "--shown", shown[1], "--reason", "r", "--actor", "sam")
		ends(exitDone, "Dry run", "approve", "w1", "--shown", shown[1], "--reason", "r", "--dry-run")
		ends(exitDone, "with the role admin", "approve", "w1", "--shown", shown[1], "--reason", "r", "--actor", "ann", "--wait", "30s")
		ends(exitDone, "Applied", "approve", "w1", "--shown", shown[1], "--reason", "r", "--actor", "ann")
		ends(exitDone, "ann (admin) approves: r", "approve", "w1")
		ends(exitDone, "Applied", "approve", "w1", "--shown", shown[1], "--reason", "r", "--actor", "bob", "--wait", "30s")
		if err := at(ctx, c, "pay", "w1", saga.Completed); err != nil {
			return err
		}
		ends(exitDone, "it is decided: approved", "approve", "w1", "--step", "approved")
		other := regexp.MustCompile(`--shown ([0-9a-f]+)`).FindStringSubmatch(ends(exitDone, "To reject just this", "reject", "w2"))
		ends(exitDone, "Applied", "reject", "w2", "--shown", other[1], "--reason", "too dear", "--actor", "bob", "--wait", "30s")
		if err := at(ctx, c, "pay", "w2", saga.Compensated); err != nil {
			return err
		}
		ends(exitDone, "rejected, says bob: too dear", "history", "w2")
		ends(exitDone, "Applied", "reject", "w2", "--shown", other[1], "--reason", "r", "--actor", "bob")
		ends(exitConflict, "nothing is to be decided", "reject", "w2", "--shown", other[1], "--reason", "r")
		return nil
	}, pay)
}
