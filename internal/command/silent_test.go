package command

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/pgtest"
)

// No verb waits for ever for a server that has fallen silent, behind whatever message: it says which
// server, and what that was asked for (issue 45, item 17).
func TestNoVerbWaitsForASilentServer(t *testing.T) {
	t.Parallel()
	seeded := &pgtest.Template{Prepare: seedPostgres}
	address := seeded.URL(t)
	for i, words := range eachVerb {
		if slices.Contains([]string{"version", "token", "start", "verify"}, words[0]) { // they ask no database
			continue
		}
		t.Run(strings.Join(words, " "), func(t *testing.T) {
			t.Parallel()
			w := pgtest.NewWire(t, address)
			u, err := url.Parse(w.URL())
			if err != nil {
				t.Fatal(err)
			}
			q := u.Query()
			q.Set("connect_timeout", "2")
			u.RawQuery = q.Encode()
			for _, messages := range []int{i % 4, 7} { // the second behind what all verbs begin with
				w.SilenceNext(messages)
				var out, errs bytes.Buffer
				ended := make(chan exit)
				go func() {
					args := append(words, "--db", u.String())
					ended <- exec(t.Context(), func(string) string { return "" }, args, strings.NewReader(""), &out, &errs)
				}()
				select {
				case <-ended:
				case <-time.After(2 * time.Minute): // never, not soon
					t.Fatalf("behind %d messages it has not ended after two minutes", messages)
				}
				want := fmt.Sprintf("the server %s has said nothing for ", u.Host)
				if messages < 7 && !strings.Contains(errs.String(), want) {
					t.Errorf("behind %d messages it says %s%s, want %q", messages, &out, &errs, want)
				}
			}
		})
	}
}
