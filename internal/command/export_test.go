package command

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/desk"
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
