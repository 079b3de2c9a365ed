package command

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/sqlite"
)

// An export with one byte changed, wherever it is, is never taken for sound: every position of a small one, and of a larger one many.
func TestEveryByteOfAnExportCounts(t *testing.T) {
	t.Parallel()
	small, _ := held(t, "o1")
	larger, _ := held(t, "o1", "o2", "o3", "o4", "o5", "o6", "o7", "o8", "o9")
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	file := exported(t, small, "--bodies")
	for i := range file {
		finds(t, file, i, byte(1)<<random.IntN(8))
	}
	last := bytes.LastIndex(file, []byte(`{"kind":"end"`))
	for i := range file[last:] {
		finds(t, file, last+i, 0x20) // another case of a letter: JSON reads names in any
		if sound(t, file[:last+i]) {
			t.Errorf("cut off behind %d bytes of %d it is sound", last+i, len(file))
		}
	}
	file = exported(t, larger)
	for range 300 {
		at := random.IntN(len(file))
		finds(t, file, at, byte(1+random.IntN(255)))
		if sound(t, file[:at]) {
			t.Errorf("cut off behind %d bytes of %d it is sound", at, len(file))
		}
	}
}

// A long chain has snapshots, which an export leaves out with the other bodies: it is sound all the same.
func TestALongChainIsExported(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	env := func(name string) string { return map[string]string{"AMENDS_DB": path}[name] }
	l, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	id, anna := saga.ID{Saga: "order-to-invoice", Work: "o1"}, saga.Actor{Name: "anna", Reason: "a test"}
	err = running(t.Context(), l, 1, func(ctx context.Context, c *coordinator.Coordinator) error {
		_, err := c.Start(ctx, "order-to-invoice", "o1", shopOrder{Number: 5}, nil)
		for i := 0; i < 40 && err == nil; i++ {
			err = errors.Join(settled(ctx, c.Operator, "o1", quietly), c.Pause(ctx, id, anna), settled(ctx, c.Operator, "o1", isPaused), c.Resume(ctx, id, anna))
		}
		return err
	})
	records, herr := l.History(t.Context(), id)
	if err := errors.Join(err, herr); err != nil || !slices.ContainsFunc(records, func(r machine.Record) bool { return len(r.Snapshot) > 0 }) {
		t.Fatalf("of %d records none has a snapshot, %v", len(records), err)
	}
	if !sound(t, exported(t, env)) || !sound(t, exported(t, env, "--bodies")) {
		t.Error("it is not sound")
	}
}

func isPaused(s saga.Status) bool { return s == saga.Paused }
func quietly(s saga.Status) bool  { return s != saga.Paused && quiet(s) }

// exported is an export with acts of people in it.
func exported(t *testing.T, env func(string) string, flags ...string) []byte {
	t.Helper()
	for _, verb := range []string{"pause", "resume"} {
		if status, said := says(t, env, "", verb, "--all", "--reason", "a test", "--actor", "anna"); status != exitDone {
			t.Fatal(said)
		}
	}
	var out, errs bytes.Buffer
	if status := exec(t.Context(), env, append([]string{"export"}, flags...), strings.NewReader(""), &out, &errs); status != exitDone {
		t.Fatalf("%d, %s", status, errs.String())
	}
	if status, said := says(t, func(string) string { return "" }, out.String(), "verify"); status != exitDone || strings.Count(said, "\n") != 1 || said != errs.String() {
		t.Fatalf("%d: verify says %sand export said %s", status, said, errs.String())
	}
	return out.Bytes()
}

// finds fails when a change of one byte is not found.
func finds(t *testing.T, file []byte, at int, flip byte) {
	t.Helper()
	changed := bytes.Clone(file)
	changed[at] ^= flip
	if sound(t, changed) {
		t.Errorf("with byte %d changed from %q to %q it is sound", at, file[at], changed[at])
	}
}

// sound verifies without the command, which takes longer than the file. An error is that of a newer format.
func sound(t *testing.T, file []byte) bool {
	t.Helper()
	v, err := desk.New(nil, "").Verify(t.Context(), &desk.VerifyIn{From: bytes.NewReader(file), Progress: func(int64) {}})
	if err != nil {
		if !strings.Contains(err.Error(), "knows those up to 1") {
			t.Error(err)
		}
		return false
	}
	if v.Sound != (v.Alarm() == nil) {
		t.Errorf("sound is %t, and the command ends with %v", v.Sound, v.Alarm())
	}
	return v.Sound
}
