package saga

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A revision is the version of the source object, as text: a whole number (17), or a time as RFC 3339 has it
// (2026-11-20T10:00:00.25Z). Behind an epoch ("2/17") it is newer than everything of an earlier epoch: a source
// that counts anew after a restore begins a new one. The empty revision is older than every other.

// version is a parsed revision.
type version struct {
	epoch  int64
	isTime bool
	number uint64
	time   time.Time
}

// CheckRevision says what is wrong with a revision, or nil.
func CheckRevision(s string) error {
	_, err := parseRevision(s)
	return err
}

// CompareRevisions orders two revisions: negative when a is older than b, 0 when they are the same version,
// positive when a is newer. Numbers compare as numbers and times as times; within one epoch every time is newer
// than every number. A text that is no revision is older than all that are.
func CompareRevisions(a, b string) int {
	va, errA := parseRevision(a)
	vb, errB := parseRevision(b)
	if errA != nil || errB != nil {
		return cmp.Or(cmp.Compare(flag(errA == nil), flag(errB == nil)), strings.Compare(a, b))
	}
	return cmp.Or(
		cmp.Compare(flag(a != ""), flag(b != "")),
		cmp.Compare(va.epoch, vb.epoch),
		cmp.Compare(flag(va.isTime), flag(vb.isTime)),
		cmp.Compare(va.number, vb.number),
		va.time.Compare(vb.time),
	)
}

func parseRevision(s string) (version, error) {
	var v version
	if s == "" {
		return v, nil
	}
	text := s
	if epoch, rest, ok := strings.Cut(s, "/"); ok {
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
		return v, fmt.Errorf("revision %q is neither a whole number nor a time like 2026-11-20T10:00:00Z", s)
	}
	v.isTime = true
	return v, nil
}
