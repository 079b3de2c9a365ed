package storetest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/prove"
)

// childVariable makes a test binary a child that accepts until it is killed. It holds the address
// of the database.
const childVariable = "AMENDS_STORE_CHILD"

// Main is TestMain for packages whose stores live in a database: it runs the tests, or the child of
// one of them.
func Main(m *testing.M, open func(ctx context.Context, address string) (Store, error)) {
	address := os.Getenv(childVariable)
	if address == "" {
		m.Run()
		return
	}
	s, err := open(context.Background(), address)
	if err == nil {
		if breaks := switches()[prove.Broken()]; breaks.how != nil {
			s = breaks.how(s)
		}
		err = acceptForEver(s)
	}
	fmt.Fprintln(os.Stderr, "child:", err)
}

// inFlight is how many deliveries the child accepts at the same time.
const inFlight = 32

// acceptForEver accepts one event after another and prints the number of each that was answered.
func acceptForEver(s Store) error {
	var last atomic.Int64
	var printing sync.Mutex
	errs := make(chan error)
	for range inFlight {
		go func() {
			for {
				n := strconv.FormatInt(last.Add(1), 10)
				if err := s.Accept(context.Background(), []intake.Event{event(n)}); err != nil {
					errs <- err
					return
				}
				printing.Lock()
				_, err := os.Stdout.WriteString(n + "\n")
				printing.Unlock()
				if err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	return <-errs
}

// I-13: "has them on disk when it returns": what a process answered before it was killed is there.
func crashAnswered(b *bench) {
	child := exec.CommandContext(b.Context(), of(os.Executable()), "-test.run=^$")
	child.Env = append(os.Environ(), childVariable+"="+b.harness.Address(b.T, b.raw))
	child.Stderr = os.Stderr
	out := of(child.StdoutPipe())
	ok(child.Start())
	watchdog := time.AfterFunc(time.Minute, func() { _ = child.Process.Kill() })
	defer watchdog.Stop()

	var answered []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		answered = append(answered, lines.Text())
		if len(answered) == 500 {
			ok(child.Process.Kill()) // SIGKILL
		}
	}
	_ = child.Wait() // it was killed
	if len(answered) < 500 {
		b.Fatalf("the child answered %d deliveries and ended", len(answered))
	}
	stored := make(map[string]int)
	for _, d := range b.all() {
		stored[d.Object.ID]++
	}
	for _, n := range answered {
		if stored[n] != 1 {
			b.Errorf("delivery %s was answered, and %d of it are there", n, stored[n])
		}
	}
}
