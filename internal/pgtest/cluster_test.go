package pgtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
)

// asProgram, when set, turns the test binary into a program that starts a cluster,
// prints its URL and waits to be killed.
const asProgram = "PGTEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		beProgram()
	}
	os.Exit(m.Run())
}

func beProgram() {
	cluster, err := pgtest.Start(context.Background(), "", nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(cluster.URL())
	select {}
}

// A cluster does not outlive its program, even one that was killed with SIGKILL.
func TestClusterEndsWithAKilledProgram(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	if _, err := pgtest.Find(); err != nil {
		pgtest.Unavailable(t, err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := exec.CommandContext(t.Context(), self)
	program.Env = append(os.Environ(), asProgram+"=1")
	output, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(line)
	db := open(t, address)
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatalf("%s: %v", address, err)
	}

	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait() // it was killed
	// Our connection ends when the server does.
	if _, err := db.ExecContext(t.Context(), "SELECT pg_sleep(30)"); err == nil {
		t.Fatal("the server outlived its program")
	}
	await(t, func() error { return gone(address) })
}

// gone says what is left of a cluster.
func gone(address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return err
	}
	root := parsed.Query().Get("host")
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is still there", root)
	}
	return nil
}

// await asks until check is content; the guard has no other way to tell us.
func await(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatal(err)
		}
	}
}
