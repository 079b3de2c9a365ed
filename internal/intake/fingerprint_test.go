package intake

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/reading"
)

// What means the same has the same fingerprint; what does not has another.
func TestFingerprint(t *testing.T) {
	for _, row := range []struct {
		name, a, b string
		volatile   []string
		same       bool
	}{
		{"keys in another order", `{"a":1,"b":2}`, `{ "b": 2, "a": 1 }`, nil, true},
		{"another value", `{"a":1}`, `{"a":2}`, nil, false},
		{"1 and 1.0", `{"a":1}`, `{"a":1.0}`, nil, true},
		{"1200 and 1.2e3", `[1200]`, `[1.2E+3]`, nil, true},
		{"0.05 and 5e-2", `[0.05]`, `[5e-2]`, nil, true},
		{"0, -0 and 0.00", `[0,0]`, `[-0,0.00]`, nil, true},
		{"1 and -1", `[1]`, `[-1]`, nil, false},
		{"1 and 10", `[1]`, `[10]`, nil, false},
		{"digits beyond a float", `[9007199254740993]`, `[9007199254740992]`, nil, false},
		{"a power nobody means", `[1e99999999999]`, `[1e99999999998]`, nil, false},
		{"a number and its text", `["1"]`, `[1]`, nil, false},
		{"null and nothing", `{"a":null}`, `{}`, nil, false},
		{"null and false", `[null]`, `[false]`, nil, false},
		{"escapes", `["\u00e9\/"]`, `["é/"]`, nil, true},
		{"the order of a list", `[1,2]`, `[2,1]`, nil, false},
		{"text moved between fields", `{"a":"bc","d":""}`, `{"a":"b","d":"c"}`, nil, false},
		{"lists nested otherwise", `[[1],2]`, `[[1,2]]`, nil, false},
		{"a volatile field", `{"a":1,"seen":1}`, `{"a":1,"seen":2}`, []string{"seen"}, true},
		{"a volatile field that is missing", `{"a":1,"seen":1}`, `{"a":1}`, []string{"seen"}, true},
		{"a volatile field in a list", `{"lines":[{"sku":1,"at":1}]}`, `{"lines":[{"sku":1,"at":2}]}`, []string{"lines.at"}, true},
		{"the same name elsewhere", `{"seen":1,"x":{"seen":1}}`, `{"seen":2,"x":{"seen":2}}`, []string{"seen"}, false},
	} {
		a, errA := Fingerprint(json.RawMessage(row.a), row.volatile...)
		b, errB := Fingerprint(json.RawMessage(row.b), row.volatile...)
		if errA != nil || errB != nil || a.IsZero() || (a == b) != row.same {
			t.Errorf("%s: same %t, want %t (%v, %v)", row.name, a == b, row.same, errA, errB)
		}
	}
}

// What is no JSON, or nested without end, is an error and no panic.
func TestFingerprintRefuses(t *testing.T) {
	for _, body := range []string{``, `{`, `{} {}`, `{}x`, `nul`, strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100)} {
		if fp, err := Fingerprint(json.RawMessage(body)); err == nil || !fp.IsZero() {
			t.Errorf("%.20q: %x, %v", body, fp, err)
		}
	}
}

// Writing a value anew never changes its fingerprint.
func TestFingerprintOfRewritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fields := rapid.MapOf(rapid.StringN(0, 5, -1), rapid.OneOf(
			rapid.Custom(func(t *rapid.T) any { return rapid.Int32().Draw(t, "int") }),
			rapid.Custom(func(t *rapid.T) any { return rapid.String().Draw(t, "string") }),
			rapid.Custom(func(t *rapid.T) any { return rapid.SliceOf(rapid.Bool()).Draw(t, "list") }),
		)).Draw(t, "object")
		tight, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		wide, err := json.MarshalIndent(fields, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		a, errA := Fingerprint(tight)
		b, errB := Fingerprint(wide)
		if errA != nil || errB != nil || a != b {
			t.Fatalf("%s: %v %v", tight, errA, errB)
		}
	})
}

func FuzzFingerprint(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.50,-0e9,"x\u0000",null,true]}`, `[[[]]]`, `1e-400`, `"\ud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		fp, err := Fingerprint(body)
		if (err == nil) == fp.IsZero() {
			t.Fatalf("%x with %v", fp, err)
		}
		again, _ := Fingerprint(body)
		if again != fp {
			t.Fatal("it differs from itself")
		}
	})
}

// A number has one reading: those that are one id or version are one where bodies are compared, too.
func TestNumbersAreReadAsIDsAre(t *testing.T) {
	t.Parallel()
	numbers := []string{"105", "105.0", "1.05e2", "10500e-2", "104", "1.04E2", "-105", "-105.0", "0", "-0", "0.0", "105.5", "1050", "9007199254740993", "9007199254740993.0", "9007199254740992"}
	for _, a := range numbers {
		for _, b := range numbers {
			x, whole := reading.Whole(a)
			y, also := reading.Whole(b)
			one, err1 := Fingerprint(json.RawMessage(a))
			other, err2 := Fingerprint(json.RawMessage(b))
			if err1 != nil || err2 != nil || whole && also && (x == y) != (one == other) {
				t.Errorf("%s and %s: one id %v, one state %v", a, b, x == y, one == other)
			}
		}
	}
}
