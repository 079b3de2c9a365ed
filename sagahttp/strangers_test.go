package sagahttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// An id is recorded as the destination meant it, or the step is in doubt: it is never altered, and
// nothing beside it makes a success doubtful: "an external id is never altered".
func TestAnIDIsNeverAltered(t *testing.T) {
	t.Parallel()
	const latin1 = "Content-Type: application/json; charset=iso-8859-1"
	for _, tc := range []struct{ name, header, body, id, words string }{
		{"Latin 1", latin1, "{\"id\":\"GEB\xdcHR-17\"}", "GEBÜHR-17", ""},
		{"Latin 1 that is not declared", "Content-Type: application/json", "{\"id\":\"GEB\xdcHR-17\"}", "", ".id: a text has a byte that is not UTF-8"},
		{"half of a surrogate pair", "X: y", `{"id":"inv-\ud83d-17"}`, "", ".id: a text has a byte that is not UTF-8, or half of a surrogate pair"},
		{"another case beside it", "X: y", `{"id":"inv_1","ID":"other"}`, "inv_1", ""},
		{"another case alone", "X: y", `{"Id":"inv_1"}`, "inv_1", ""},
		{"two other cases", "X: y", `{"Id":"inv_1","ID":"other"}`, "", `.id: "Id" and "ID" are both there`},
		{"twice", "X: y", `{"id":"inv_1","id":"other"}`, "", ".id: one name stands there twice"},
		{"a bad byte beside it", "X: y", "{\"id\":\"inv_1\",\"note\":\"\xdc\"}", "inv_1", ""},
		{"half of a pair beside it", "X: y", `{"note":"\ud83d","id":"inv_1"}`, "inv_1", ""},
		{"a doubled key beside it", "X: y", `{"note":1,"note":2,"id":"inv_1"}`, "inv_1", ""},
		{"a mark in front of it", "X: y", "\uFEFF{\"id\":\"inv_1\"}", "inv_1", ""},
		{"a charset that is not known", "Content-Type: application/json; charset=x-klingon", `{"id":"inv_1"}`, "", `its charset is "x-klingon", which is not known`},
		{"a byte that Greek does not have", "Content-Type: application/json; charset=iso-8859-7", "{\"id\":\"\xff\"}", "", ".id: a text"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, answer(t, "201 Created\r\n"+tc.header, tc.body).URL(), nil)
			d, err := saga.Define("s", 1, saga.Do("a", func(ctx context.Context, _ saga.Call[string]) (made identified, err error) {
				_, err = c.Do(ctx, sagahttp.Request{Method: "POST", Path: "/x", Into: &made})
				return made, err
			}).Idempotent().NoUndo("a test"))
			if err != nil {
				t.Fatal(err)
			}
			ctx, gate := gated(t, nil)
			o := d.Act(ctx, &program.Invocation{Step: "a", Direction: saga.Forward, Attempt: 1, Input: []byte(`"x"`), Gate: gate})
			switch {
			case tc.id != "":
				if !o.Done() || o.ExternalID != tc.id {
					t.Errorf("%+v", o)
				}
			case o.Done() || o.Class != saga.Unknown || !strings.Contains(o.Error, tc.words) || strings.Contains(o.Error, "inv"):
				t.Errorf("%+v", o)
			}
		})
	}
}

// A number is one number, however it is written: as an id, and as a code that promises something.
func TestOneReadingOfNumbers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int64{
		`{"id":105}`: 105, `{"id":105.0}`: 105, `{"id":1.04e2}`: 104, `{"id":1764000000.0}`: 1764000000, `{"id":616581622363398142}`: 616581622363398142,
		`{"id":105.5}`: 0, `{"id":1e99}`: 0, `{"id":"105"}`: 0,
	} {
		var made struct{ ID int64 }
		ctx, _ := gated(t, nil)
		_, err := dial(t, answer(t, "201 Created", body).URL(), nil).Do(ctx, sagahttp.Request{Method: "POST", Path: "/x", Into: &made})
		if made.ID != want || (err == nil) != (want != 0) || err != nil && !errors.Is(err, sagahttp.ErrNotJSON) {
			t.Errorf("%s: %d, %v", body, made.ID, err)
		}
	}
	for body, want := range map[string]saga.Class{
		`{"code":4001}`: saga.Unsent, `{"code":4001.0}`: saga.Unsent, `{"code":4.001e3}`: saga.Unsent, `{"code":"4001"}`: saga.Unsent,
		`{"code":4001.5}`: saga.Unknown, `{"code":40010}`: saga.Unknown, `{"code":"4001.0"}`: saga.Unknown,
	} {
		c := dial(t, answer(t, "200 OK", body).URL(), &sagahttp.Options{
			CheckResponse:    func(*sagahttp.Response) error { return saga.NotSent(errors.New("throttled")) },
			NotExecutedCodes: []string{"4001"},
		})
		ctx, _ := gated(t, nil)
		_, err := c.Do(ctx, post)
		if wantClass(t, err, want); t.Failed() {
			t.Fatal(body)
		}
	}
}

// Digits of a number that is read into an untyped value are those of the answer.
func TestUntypedNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	for _, n := range []string{"616581622363398142", "9007199254740993", "-5", "0.1234567890123456789", "1e400", "105.0"} {
		var made map[string]any
		var first []any
		for into, body := range map[any]string{&made: `{"id":` + n + `}`, &first: `[` + n + `]`} {
			if _, err := dial(t, answer(t, "201 Created", body).URL(), nil).Do(t.Context(), sagahttp.Request{Method: "POST", Path: "/x", Into: into}); err != nil {
				t.Fatal(err)
			}
		}
		if made["id"] != json.Number(n) || first[0] != json.Number(n) {
			t.Errorf("%s is read as %v and %v", n, made["id"], first[0])
		}
	}
}

// What is kept as it came is asked for nothing: a list is not lost for a note in one of its objects.
func TestRawAnswersAreKeptAsTheyCame(t *testing.T) {
	t.Parallel()
	const body = `{"orders":[{"id":1,"note":"\ud83d"},{"id":2,"id":3}]}`
	var page struct{ Orders []json.RawMessage }
	_, err := dial(t, answer(t, "200 OK", body).URL(), nil).Do(t.Context(), sagahttp.Request{Method: "GET", Path: "/x", Into: &page})
	if err != nil || len(page.Orders) != 2 || string(page.Orders[0]) != `{"id":1,"note":"\ud83d"}` {
		t.Errorf("%s, %v", page.Orders, err)
	}
}

// What a refusal says is read in its charset, too.
func TestWordsInAnotherCharset(t *testing.T) {
	t.Parallel()
	for header, body := range map[string]string{
		"application/json; charset=iso-8859-1": "{\"message\":\"keine Geb\xfchr\"}",
		"text/plain; charset=windows-1252":     "keine Geb\xfchr",
		"application/json":                     "\uFEFF{\"message\":\"keine Gebühr\"}",
	} {
		ctx, _ := gated(t, nil)
		_, err := dial(t, answer(t, "422 X\r\nContent-Type: "+header, body).URL(), nil).Do(ctx, post)
		if wantClass(t, err, saga.Refused); !strings.Contains(err.Error(), "keine Gebühr") {
			t.Errorf("%s: %v", header, err)
		}
	}
}
