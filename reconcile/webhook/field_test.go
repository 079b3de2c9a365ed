package webhook

import (
	"encoding/json"
	"strings"
	"testing"
)

// A number has one reading: ids and times that are written as 105, 105.0 or 1.05e2 are one. Digits
// are never lost, and a number that is not whole, or too large to be a name, is none.
func TestWholeNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`105`: "105", `105.0`: "105", `1.05e2`: "105", `1.05E+2`: "105", `10500e-2`: "105", `1.04e2`: "104", `1764000000.0`: "1764000000", `-5.0`: "-5",
		`9007199254740993`: "9007199254740993", `9007199254740993.0`: "9007199254740993", `1e3`: "1000", `0.0`: "0", `-0.0`: "0",
		`"105.0"`: "105.0", `"1e3"`: "1e3", // a text is never altered
		`105.5`: "", `-0`: "0", `1e-2`: "", `1e999999999`: "", `1e100`: "", `true`: "", `[]`: "", `null`: "",
		"1" + strings.Repeat("0", 300) + ".0": "",
	} {
		var w word
		err := json.Unmarshal([]byte(text), &w)
		if string(w) != want || (err != nil) != (want == "" && text != "null") {
			t.Errorf("%.40s is %q (%v), want %q", text, w, err, want)
		}
	}
}
