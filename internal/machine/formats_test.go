package machine

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Keys, hashes and structures are formats: what is written today must read the same in ten years.
// The values below were computed by a separate program (Python's hashlib over the documented
// layouts), not by this package. When one of these tests fails, the format has changed, and ledgers
// in the world no longer match.

func TestKeysAreAFormat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ saga, work, revision, want string }{
		{"order-to-invoice", "shop:order:10492", "", "am-do3hyXdOqsvpOhS99ahsZyMf3yKrb1Ub"},
		{"order-to-invoice", "shop:order:10492", "v7", "am-xfrAYPGIDimRAWkXoNeJUD1X7MJawiL0"},
		{"a", "bc", "", "am-92EIxMXjYGVNTRvNMmtlnqXV-xtz6STe"},
		{"ab", "c", "", "am-SotZ5vy5HROCqja7jR5thKZlrAXiixzx"},
		{"é", "日本", "ÿ", "am-8-tZeekke1GEEYeyzNfTDpaNGUuBJcJS"},
	} {
		if got := RootKey(c.saga, c.work, c.revision); got != c.want {
			t.Errorf("RootKey(%q, %q, %q) = %s, want %s", c.saga, c.work, c.revision, got, c.want)
		}
	}
	root := "am-do3hyXdOqsvpOhS99ahsZyMf3yKrb1Ub"
	for _, c := range []struct {
		dir     saga.Direction
		reissue int
		want    string
	}{
		{saga.Forward, 0, "am-Fd3EBLoMuDPXOCQcVKxZ_0rQljmtnU0r"},
		{saga.Undo, 0, "am-l4vP0ReaqKZAjKmaUosZLMXDT_Nrt6_T"},
		{saga.Forward, 1, "am-Si40BJDJka_icJ6XQFwE4RmYEtQ6cd-f"},
		{saga.Forward, 12, "am-53vRup6SE8J5pai5YCOeCsCNse8-m5zL"},
	} {
		if got := StepKey(root, "invoice", c.dir, c.reissue); got != c.want {
			t.Errorf("StepKey(%s, %d) = %s, want %s", c.dir, c.reissue, got, c.want)
		}
	}
}

// A root key that is kept is of its revision alone.
func TestTheKeptRootIsOfItsRevision(t *testing.T) {
	t.Parallel()
	st := &State{ID: order, Revision: "1"}
	for _, revision := range []string{"1", "1", "2", "", "1"} {
		st.Revision = revision
		if got, want := st.root(), RootKey(order.Saga, order.Work, revision); got != want {
			t.Errorf("at revision %q the root is %s, want %s", revision, got, want)
		}
		st.keepRoot()
		if got := st.root(); got != st.kept.root {
			t.Errorf("it keeps %s, and its root is %s", st.kept.root, got)
		}
	}
}

// A key has at most 36 characters and needs no escaping in a URL.
func TestKeysFitEverywhere(t *testing.T) {
	t.Parallel()
	fits := regexp.MustCompile(`^am-[A-Za-z0-9_-]{32}$`)
	for _, s := range []string{"", "x", strings.Repeat("long", 1000), "\x00\xff", "?&=#/ "} {
		for _, key := range []string{RootKey(s, s, s), StepKey(s, s, saga.Undo, 1<<40)} {
			if !fits.MatchString(key) || len(key) > 36 {
				t.Errorf("key %q", key)
			}
		}
	}
}

var salt = Salt{16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}

// The hash of a record, as documented at Sum: version, every field in a fixed order, integers as 8
// bytes big endian, texts with their length before them, and what may hold a person's data by its
// salted digest.
func TestRecordHashIsAFormat(t *testing.T) {
	t.Parallel()
	first := Record{
		Seq: 1, Session: 0x0123456789abcdef, Kind: KindStarted, Version: 3, Revision: "v7", Nonce: -5,
		Body: json.RawMessage(`"3 lines"`), Status: saga.Running,
		Dispatch: &Dispatch{Step: "customer", Direction: saga.Forward, Attempt: 1, Key: "am-k", Budget: 30 * time.Second},
	}
	middle := Record{
		Seq: 7, Session: -2, Kind: KindUnknown, Step: "invoice", Direction: saga.Undo, Attempt: 4, ExternalID: "inv_1",
		BodyDropped: true, ErrorClass: saga.Unknown, Error: "zeit überschritten", Note: "look", Actor: "anna", Why: "she called", Signals: []int64{3, 99},
		Status: saga.Review, Reason: saga.ReasonUndoFailed, Wait: 1500 * time.Millisecond, Snapshot: json.RawMessage(`{"seq":6}`),
	}
	caused := first // the words of a start are what caused it
	caused.Cause = "webhook evt_1"
	waiting := Record{
		Seq: 3, Session: 9, Kind: KindWaiting, Step: "cooling-off", Direction: saga.Forward, Status: saga.Waiting, Wait: 14 * 24 * time.Hour, Until: time.UnixMilli(1773576000123), Limit: 30 * time.Second,
	}
	counting := Hash{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	for _, c := range []struct {
		r    Record
		id   saga.ID
		prev Hash
		want string
	}{
		{first, order, Hash{}, "f75407cc293b755066681006cc7f57d0"},
		{caused, order, Hash{}, "e079c575d4d7141eb31f381d0574f018"},
		{middle, order, counting, "a6d7f1cb0c462ace0af00a96bcfe417e"},
		{waiting, order, counting, "5efe340108a45879e862d10765ba54ad"},
		{Record{}, saga.ID{}, Hash{}, "edf7d7265c70e828eff12daa62e867a3"},
	} {
		c.r.At = noon // not part of the hash
		if got := c.r.Sum(c.id, salt, c.prev).String(); got != c.want {
			t.Errorf("record %d: %s, want %s", c.r.Seq, got, c.want)
		}
	}
}

// Every field of the record but the database's time is in its hash, and so are the work and the
// predecessor.
func TestRecordHashCoversEverything(t *testing.T) {
	t.Parallel()
	base := func() Record { return Record{Seq: 2, Dispatch: &Dispatch{}} }
	changes := map[string]func(*Record){
		"Seq": func(r *Record) { r.Seq++ }, "Session": func(r *Record) { r.Session++ }, "Kind": func(r *Record) { r.Kind = "x" },
		"Version": func(r *Record) { r.Version++ }, "Revision": func(r *Record) { r.Revision = "x" }, "Nonce": func(r *Record) { r.Nonce++ },
		"Step": func(r *Record) { r.Step = "x" }, "Direction": func(r *Record) { r.Direction = saga.Undo }, "Attempt": func(r *Record) { r.Attempt++ },
		"ExternalID": func(r *Record) { r.ExternalID = "x" }, "Body": func(r *Record) { r.Body = json.RawMessage("1") },
		"BodyDropped": func(r *Record) { r.BodyDropped = true }, "Class": func(r *Record) { r.ErrorClass = saga.Unknown }, "Error": func(r *Record) { r.Error = "x" },
		"Note": func(r *Record) { r.Note = "x" }, "Actor": func(r *Record) { r.Actor = "x" }, "Why": func(r *Record) { r.Why = "x" }, "Cause": func(r *Record) { r.Cause = "x" },
		"Signals": func(r *Record) { r.Signals = []int64{0} }, "Status": func(r *Record) { r.Status = saga.Running }, "Reason": func(r *Record) { r.Reason = "x" },
		"Wait": func(r *Record) { r.Wait++ }, "Until": func(r *Record) { r.Until = noon }, "Limit": func(r *Record) { r.Limit++ }, "Arm": func(r *Record) { r.Dispatch = nil }, "Snapshot": func(r *Record) { r.Snapshot = json.RawMessage("1") },
		"Arm.Step": func(r *Record) { r.Dispatch.Step = "x" }, "Arm.Direction": func(r *Record) { r.Dispatch.Direction = saga.Undo }, "Arm.Attempt": func(r *Record) { r.Dispatch.Attempt++ },
		"Arm.Key": func(r *Record) { r.Dispatch.Key = "x" }, "Arm.Reissue": func(r *Record) { r.Dispatch.Reissue++ }, "Arm.Budget": func(r *Record) { r.Dispatch.Budget++ },
	}
	r := base()
	seen := map[Hash]string{r.Sum(order, Salt{}, Hash{}): "nothing"}
	note := func(what string, h Hash) {
		if with, ok := seen[h]; ok {
			t.Errorf("changing %s gives the same hash as changing %s", what, with)
		}
		seen[h] = what
	}
	for what, change := range changes {
		r := base()
		change(&r)
		note(what, r.Sum(order, Salt{}, Hash{}))
	}
	private := base()
	private.Error = "y"
	note("an error", private.Sum(order, Salt{}, Hash{}))
	note("its salt", private.Sum(order, salt, Hash{}))
	note("the predecessor", r.Sum(order, Salt{}, Hash{1}))
	note("the saga", r.Sum(saga.ID{Saga: "x", Work: order.Work}, Salt{}, Hash{}))
	note("the work", r.Sum(saga.ID{Saga: order.Saga, Work: "x"}, Salt{}, Hash{}))
}

// What may hold a person's data can be erased, all of it or a body alone, and the salt with it: the
// hash stays, and nothing that is left tells what was there.
func TestErasedRecordsKeepTheirHash(t *testing.T) {
	t.Parallel()
	whole := Record{
		Seq: 7, Session: 3, Kind: KindUnknown, Step: "invoice", Direction: saga.Forward, Attempt: 4, ExternalID: "inv_1", Body: json.RawMessage(`{"name":"Ada"}`),
		ErrorClass: saga.Unknown, Error: "Ada's card", Note: "Ada", Actor: "anna", Why: "Ada called", Cause: "Ada", Signals: []int64{3}, Status: saga.Review,
		Reason: saga.ReasonInDoubt, Snapshot: json.RawMessage(`{"input":"Ada"}`),
	}
	want := whole.Sum(order, salt, Hash{9})
	body := whole
	body.Digests.Body, body.Body = whole.digests(salt).Body, nil
	if got := body.Sum(order, salt, Hash{9}); got != want {
		t.Errorf("without its body %s, want %s", got, want)
	}
	for _, r := range []Record{whole, body} {
		r.Erase(salt)
		if got := r.Sum(order, Salt{}, Hash{9}); got != want {
			t.Errorf("erased: %s, want %s", got, want)
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{"Ada", "anna", "inv_1"} {
			if strings.Contains(string(b), s) {
				t.Errorf("%q is left in %s", s, b)
			}
		}
		if again := r; true {
			if again.Erase(Salt{}); again.Digests != r.Digests {
				t.Error("erasing it again changes it")
			}
		}
	}
	other := whole
	other.Erase(Salt{1})
	mine := whole
	if mine.Erase(salt); other.Digests == mine.Digests || mine.Digests.Texts == mine.Digests.Body {
		t.Error("the digests do not depend on the salt")
	}
}

func TestSeal(t *testing.T) {
	t.Parallel()
	r := Record{Kind: KindNoted, Status: saga.Running}
	r.Seal(order, Salt{}, 6, Hash{9}, 7)
	if r.Seq != 7 || r.Session != 7 || r.Hash != r.Sum(order, Salt{}, Hash{9}) || r.Hash == (Hash{}) {
		t.Errorf("sealed %+v", r)
	}
}

// A hash and a token read back what they write.
func TestHashAndTokenAsText(t *testing.T) {
	t.Parallel()
	h := Hash{0xab, 1, 15: 0xff}
	text, _ := h.MarshalText()
	var back Hash
	if err := back.UnmarshalText(text); err != nil || back != h || string(text) != "ab0100000000000000000000000000ff" {
		t.Errorf("%s reads back as %s (%v)", text, back, err)
	}
	for _, bad := range []string{"", "ab", strings.Repeat("g", 32), strings.Repeat("a", 33)} {
		if err := back.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is read as a hash", bad)
		}
	}
	if got := Token(-1).String(); got != "ffffffffffffffff" {
		t.Errorf("token %s", got)
	}
}

// Structure is a format: it decides whether a definition may be registered under a number that is
// taken.
func TestStructureIsAFormat(t *testing.T) {
	t.Parallel()
	spec := &program.Spec{Saga: "any", Version: 9, Steps: []program.StepSpec{
		{Name: "customer", Repeat: program.RepeatIdempotent, NoUndoReason: "customers outlive their orders"},
		{Name: "invoice", Repeat: program.RepeatKeyed, TTL: 24 * time.Hour, Find: true, Undo: true},
		{Name: "mark", Repeat: program.RepeatIdempotent, Undo: true, Pivot: true},
		{Name: "receipt", Repeat: program.RepeatAtMostOnce},
	}}
	if got, want := spec.Structure(), "b726f76939324a6537e08c2abed73296"; got != want {
		t.Errorf("structure %s, want %s", got, want)
	}
}

// What may be tuned under one number does not change the structure; everything else does.
func TestStructureCovers(t *testing.T) {
	t.Parallel()
	base := structure(t, orderToInvoice)
	for _, c := range []struct {
		what  string
		lines string
		same  bool
	}{
		{"timeouts, settles, retries, destinations", "customer idempotent no-undo timeout=1m settle=5s to=crm\ninvoice find undo attempts=3 within=1h\nmark-synced idempotent undo pivot\nreceipt at-most-once initial=1m", true},
		{"a delay", orderToInvoice + "rest delay=1h", false},
		{"a name", "client idempotent no-undo\ninvoice find undo\nmark-synced idempotent undo pivot\nreceipt at-most-once", false},
		{"an order", "invoice find undo\ncustomer idempotent no-undo\nmark-synced idempotent undo pivot\nreceipt at-most-once", false},
		{"a step more", orderToInvoice + "thanks at-most-once", false},
		{"how a step repeats", "customer idempotent no-undo\ninvoice idempotent undo\nmark-synced idempotent undo pivot\nreceipt at-most-once", false},
		{"a lookup", "customer idempotent lookup no-undo\ninvoice find undo\nmark-synced idempotent undo pivot\nreceipt at-most-once", false},
		{"an undo", "customer idempotent undo\ninvoice find undo\nmark-synced idempotent undo pivot\nreceipt at-most-once", false},
		{"once for the work", "customer idempotent no-undo once\ninvoice find undo\nmark-synced idempotent undo pivot\nreceipt at-most-once", false},
		{"the pivot", "customer idempotent no-undo\ninvoice find undo pivot\nmark-synced idempotent\nreceipt at-most-once", false},
	} {
		other, err := define("another-name", 2, c.lines)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if same := other.Structure() == base.Structure(); same != c.same {
			t.Errorf("%s: the same structure: %v, want %v", c.what, same, c.same)
		}
	}
	a, b := structure(t, "a keyed=1h undo"), structure(t, "a keyed=2h undo")
	if a.Structure() == b.Structure() {
		t.Error("a key window does not change the structure")
	}
}

// A spec survives the ledger.
func TestSpecAsJSON(t *testing.T) {
	t.Parallel()
	spec := structure(t, "a keyed=1h lookup undo to=books attempts=3 within=1h initial=2s max=1m\nb idempotent undo pivot\nc at-most-once")
	var back program.Spec
	if err := json.Unmarshal(dump(t, spec), &back); err != nil {
		t.Fatal(err)
	}
	if back.Structure() != spec.Structure() || string(dump(t, back)) != string(dump(t, spec)) {
		t.Errorf("%s reads back as %s", dump(t, spec), dump(t, back))
	}
}

// The waits of a policy are a function of key and try (computed by the same separate program), so
// that the same chain decides the same everywhere.
func TestBackoffIsAFunction(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{
		1: 920 * time.Millisecond, 2: 1648 * time.Millisecond, 3: 2664 * time.Millisecond,
		8: 113108 * time.Millisecond, 12: 825931 * time.Millisecond, 40: 812864 * time.Millisecond,
	} {
		if got := (program.Retry{}).Backoff("am-k", n); got != want {
			t.Errorf("the wait after try %d is %s, want %s", n, got, want)
		}
	}
}
