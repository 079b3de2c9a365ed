package intake

import (
	"testing"
	"time"
)

// What is gone and comes back, and looks that lag: what the model fetch.pml found and what lags behind.
func TestGoneAndBack(t *testing.T) {
	t.Parallel()
	v1, v2, v3 := clocked(1), clocked(2), clocked(3)
	n1, n2, n3, n4 := Counter(1), Counter(2), Counter(3), Counter(4)
	for _, row := range []struct {
		name   string
		policy Policy
		story  func(d *desk)
	}{
		{"R6: a hint between the two looks may be of the object's return, and is answered by a third", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(thin(Version{}), Hint).asks(gone, "a second look").later(time.Second).hears(thin(Version{}), Hint)
			d.later(time.Second).asks(gone, "gone").buried(v1, 2).owes(false) // as it was within the lag
			d.later(2*time.Second).asks(shows(v2, "b"), "a second look").later(2*time.Second).asks(shows(v2, "b"), "accepted").holds(v2, "b", 3)
		}},
		{"R6: the third look is the last", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(thin(Version{}), Hint).goes().later(2*time.Second).asks(gone, "still gone").buried(v1, 2).rests()
		}},
		{"R6, J9: a late deletion that names its version leaves the look for the object's return", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(thin(Version{}), Hint).asks(gone, "a second look").later(time.Second).hears(thin(Version{}), Hint)
			d.later(time.Second).asks(gone, "gone").hears(deletes(v2), Tombstoned).buried(v2, 2).owes(false)
			d.later(2*time.Second).asks(shows(v3, "c"), "accepted").holds(v3, "c", 3)
		}},
		{"R5, J9: and the second look that a hint of it is owed", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(thin(Version{}), Hint).asks(shows(v1, "a"), "unchanged").hears(deletes(v2), Tombstoned).buried(v2, 2)
			d.later(3*time.Second).asks(shows(v3, "c"), "accepted").holds(v3, "c", 3)
		}},
		{"R6: a look that a newer version hastens is not the third, however late its answer comes", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(thin(Version{}), Hint).goes().later(time.Second).hears(says(v3, "c"), Hint)
			d.asksWhile(func() { d.later(5 * time.Second) }, gone, "still gone").buried(v1, 2).owes(false)
			d.later(2*time.Second).asks(shows(v3, "c"), "a second look").later(2*time.Second).asks(shows(v3, "c"), "accepted").holds(v3, "c", 3)
		}},
		{"R6: one that began in time is, however late its answer comes", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(thin(Version{}), Hint).goes().later(2*time.Second).asksWhile(func() { d.later(5 * time.Second) }, gone, "still gone").rests()
		}},
		{"R5: nor is one the second that a change hastens which has waited for long enough", Policy{Dense: true, Merge: mergeObjects}, func(d *desk) {
			d.hears(says(n1, "a"), Applied).later(time.Minute).hears(thin(Version{}), Hint).asks(shows(n1, "a"), "unchanged").hears(delta(3), Parked)
			d.asks(shows(n3, "a"), "unchanged").later(2*time.Second).asks(shows(n4, "d"), "accepted").holds(n4, "d", 2)
		}},
		{"R5: nor does it end the wait for what another hint was about", Policy{}, func(d *desk) {
			d.hears(says(n1, "a"), Applied).hears(thin(Version{}), Hint).asks(shows(n1, "a"), "unchanged")
			d.hears(thin(n2), Hint).asks(shows(n2, "b"), "accepted").later(2*time.Second).asks(shows(n3, "c"), "accepted").holds(n3, "c", 3)
		}},
		{"R5: what was named before the object was gone is not what a later hint is about", Policy{}, func(d *desk) {
			d.hears(says(n1, "a"), Applied).hears(deletes(n2), Tombstoned).hears(says(n3, "c"), Hint).asks(gone, "still gone")
			d.later(2*time.Second).asks(gone, "still gone").rests().hears(deletes(Version{}), Hint).asks(shows(n3, "c"), "accepted") // as it was within the lag
			d.later(2*time.Second).asks(gone, "a second look").later(2*time.Second).asks(gone, "gone").buried(n3, 4)
		}},
		{"R5: nor is what a change names that waits for the one before it", Policy{Dense: true, Merge: mergeObjects}, func(d *desk) {
			d.hears(says(n1, "a"), Applied).hears(delta(3), Parked).hears(deletes(Version{}), Hint).asks(shows(n3, "c"), "accepted")
			d.later(2*time.Second).asks(gone, "a second look").later(2*time.Second).asks(gone, "gone").buried(n3, 3)
		}},
		{"R5: one hint that names what is found owes no second look", Policy{}, func(d *desk) {
			d.hears(says(n1, "a"), Applied).hears(thin(n4), Hint).asks(shows(n4, "d"), "accepted").rests()
		}},
		{"J8: the version of what is gone, said of what is there, is not known", Policy{}, func(d *desk) {
			d.hears(says(n1, "a"), Applied).hears(thin(Version{}), Hint).goes().later(2*time.Second).asks(gone, "still gone").rests()
			d.hears(thin(n1), Hint).asks(shows(n1, "a"), "a second look").later(2*time.Second).asks(shows(n1, "a"), "accepted").holds(n1, "a", 3)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.story(newDesk(t, row.policy))
		})
	}
}
