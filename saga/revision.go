package saga

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A revision is the version of the source object, as text: a whole number (17), or a time as RFC
// 3339 has it (2026-11-20T10:00:00.25Z). Behind an epoch ("2/17") it is newer than everything of an
// earlier epoch: a source that restarts its count after a restore begins a new epoch. The empty
// revision is older than every other.
//
// Behind a plus sign and a count ("17+1", "2026-11-20T10:00:00Z+2", "+1") it is a sub-revision: the
// same version of the source object, to be done once more. It is newer than the version and its
// lower counts, and older than the next version. The count has no leading zero and no colon, which
// tells it from a time zone ("+01:00").

// version is a parsed revision.
type version struct {
	none   bool // the empty revision, or a sub-revision of it
	epoch  int64
	isTime bool
	number uint64
	time   time.Time
	sub    int64
}

// CheckRevision says what is wrong with a revision, or nil.
func CheckRevision(s string) error {
	_, err := parseRevision(s)
	return err
}

// CompareRevisions orders two revisions: negative when a is older than b, 0 when they are the same
// version, positive when a is newer. Numbers compare as numbers and times as times; within one
// epoch every time is newer than every number. A text that is no revision is older than all that
// are.
func CompareRevisions(a, b string) int {
	va, errA := parseRevision(a)
	vb, errB := parseRevision(b)
	if errA != nil || errB != nil {
		return cmp.Or(cmp.Compare(ord(errA == nil), ord(errB == nil)), strings.Compare(a, b))
	}
	return cmp.Or(
		cmp.Compare(ord(!va.none), ord(!vb.none)),
		cmp.Compare(va.epoch, vb.epoch),
		cmp.Compare(ord(va.isTime), ord(vb.isTime)),
		cmp.Compare(va.number, vb.number),
		va.time.Compare(vb.time),
		cmp.Compare(va.sub, vb.sub),
	)
}

// SubRevision returns the next sub-revision of a revision: "17+1" behind "17", "17+2" behind
// "17+1". A work that hears it is done once more at the version it has, under new keys, although
// the source says nothing new.
func SubRevision(revision string) string {
	text, sub := SplitRevision(revision)
	return fmt.Sprintf("%s+%d", text, sub+1)
}

// BaseRevision returns the version of the source that a sub-revision repeats: "17" of "17+2", and
// of "17".
func BaseRevision(revision string) string {
	text, _ := SplitRevision(revision)
	return text
}

// SplitRevision cuts the count off a sub-revision. It is 0 for a version of the source.
func SplitRevision(s string) (text string, sub int64) {
	i := strings.LastIndexByte(s, '+')
	if i < 0 || strings.HasPrefix(s[i+1:], "0") {
		return s, 0
	}
	n, err := strconv.ParseUint(s[i+1:], 10, 31)
	if err != nil {
		return s, 0
	}
	return s[:i], int64(n)
}

func parseRevision(s string) (version, error) {
	text, sub := SplitRevision(s)
	v := version{sub: sub, none: text == ""}
	if v.none {
		return v, nil
	}
	if epoch, rest, ok := strings.Cut(text, "/"); ok {
		n, err := strconv.ParseUint(epoch, 10, 31)
		if err != nil {
			return v, fmt.Errorf("revision %q: %q is no epoch (a whole number)", s, epoch)
		}
		v.epoch, text = int64(n), rest
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err == nil {
		v.number = n
		return v, nil
	}
	if v.time, err = time.Parse(time.RFC3339Nano, text); err != nil {
		return v, fmt.Errorf("revision %q is neither a whole number nor a time like 2026-11-20T10:00:00Z (each with a count of sub-revisions or without: 17+1)", s)
	}
	v.isTime = true
	return v, nil
}

// ord orders false before true.
func ord(b bool) int {
	if b {
		return 1
	}
	return 0
}
