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

// down runs a program beside the script whose books refuse all while the file books-down is there, and waits until five works are in
// review for it. (To be used up a policy needs five minutes of failures, which no script waits for.)
func down(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: down")
	}
	sign := ts.MkAbs("books-down")
	ts.Check(os.WriteFile(sign, nil, 0o600))
	book := func(event, call) (made, error) {
		if _, err := os.Stat(sign); err == nil {
			return made{}, saga.Permanent(errors.New("the account is locked"))
		}
		return made{"entry"}, nil
	}
	begin(ts, func(ctx context.Context, l stores.DB) error {
		paid := func(event, call) (made, error) { return made{"paid"}, nil }
		d, err := saga.Define("order-to-books", 1,
			saga.Do("payment", paid).Idempotent().NoUndo("it is paid").Pivot(), saga.Do("entry", book).Idempotent().NoUndo("a test"))
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
		for n := range 5 {
			if _, err := c.Start(ctx, "order-to-books", fmt.Sprintf("shop:order:%d", 21+n), shopOrder{Number: 21 + n}, nil); err != nil {
				return err
			}
		}
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
