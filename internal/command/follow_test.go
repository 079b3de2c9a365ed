package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	stores "github.com/amends-dev/amends/store"
)

// word is one word of a command line as a page or an output shows it.
var word = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)

// follow runs the first command line that an expression finds in what was printed, as a person types it off: what is in capitals is said,
// and what comes behind -- is added: follow stdout 'amends resolve .*--happened .*' EXTERNAL_ID=mail_7 -- --wait 30s.
func follow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: follow (stdout|stderr) EXPRESSION [NAME=VALUE…] [-- FLAG…]")
	}
	line := regexp.MustCompile(args[1]).FindString(ts.ReadFile(args[0]))
	if !strings.HasPrefix(line, "amends ") {
		ts.Fatalf("no command line %s is printed", args[1])
	}
	for i, arg := range args[2:] {
		if arg == "--" {
			line += " " + strings.Join(args[i+3:], " ")
			break
		}
		name, value, _ := strings.Cut(arg, "=")
		if !strings.Contains(line, name) {
			ts.Fatalf("%q does not ask for %s", line, name)
		}
		line = strings.ReplaceAll(line, name, value)
	}
	var words []string
	for _, w := range word.FindAllString(line, -1)[1:] {
		words = append(words, strings.Trim(w, `"'`))
	}
	ts.Logf("amends %s", strings.Join(words, " "))
	if code := run(ts, words, ts.Stdout()); code != exitDone {
		ts.Fatalf("%s: exit status %d", line, code)
	}
}

// down runs a program beside the script whose books fail five works while the file books-down is there, and waits until they have used up
// their attempts: what fails while its destination serves others counts.
func down(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: down")
	}
	sign := ts.MkAbs("books-down")
	ts.Check(os.WriteFile(sign, nil, 0o600))
	book := func(_ event, c call) (made, error) {
		if _, err := os.Stat(sign); err == nil && c.Input.Number <= 25 {
			return made{}, errors.New("the account is locked")
		}
		return made{"entry"}, nil
	}
	begin(ts, func(ctx context.Context, l stores.DB) error {
		paid := func(event, call) (made, error) { return made{"paid"}, nil }
		d, err := saga.Define("order-to-books", 1,
			saga.Do("payment", paid).Idempotent().NoUndo("it is paid").Pivot(), saga.Do("entry", book).To("ledger").Idempotent().NoUndo("a test").Retry(saga.Retry{Attempts: 2, Initial: 20 * time.Millisecond, Max: 20 * time.Millisecond}))
		if err != nil {
			return err
		}
		c, err := coordinator.New(l, &coordinator.Options{Log: silent(), Poll: 10 * time.Millisecond})
		if err != nil {
			return err
		}
		if err := c.Register(ctx, d); err != nil {
			return err
		}
		start := func(n int) error {
			_, err := c.Start(ctx, "order-to-books", fmt.Sprintf("shop:order:%d", n), shopOrder{Number: n}, nil)
			return err
		}
		for n := range 5 {
			if err := start(21 + n); err != nil {
				return err
			}
		}
		go func() { // the others, until no work is tried again
			for n, left := 100, 1; left > 0 && start(n) == nil && moment(ctx) == nil; n++ {
				left = 0
				for n := range 5 {
					if s, err := c.Show(ctx, saga.ID{Saga: "order-to-books", Work: fmt.Sprintf("shop:order:%d", 21+n)}); err != nil || s.Status != saga.Review {
						left++
					}
				}
			}
		}()
		return c.Run(ctx)
	})
	stand(ts, saga.Review)
}

// up waits until those works are completed.
func up(ts *testscript.TestScript, _ bool, _ []string) { stand(ts, saga.Completed) }

// stand waits until all five stand at something.
func stand(ts *testscript.TestScript, wanted saga.Status) {
	patiently(ts, func(ctx context.Context, l stores.DB) error {
		for op, n := coordinator.NewOperator(l), 0; n < 5; {
			s, err := op.Show(ctx, saga.ID{Saga: "order-to-books", Work: fmt.Sprintf("shop:order:%d", 21+n)})
			if err == nil && s.Status == wanted {
				n++
			} else if err := moment(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}
