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

// Down is a crash: what was committed is there again after Up, and the guard still
// knows what to stop.
func TestDownAndUp(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	cluster := start(t, nil)
	db := open(t, cluster.URL())
	mustExec(t, db, "CREATE TABLE kept (id int)")
	mustExec(t, db, "INSERT INTO kept VALUES (7)")
	before, err := cluster.PID()
	if err != nil {
		t.Fatal(err)
	}

	if err := cluster.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.PingContext(t.Context()); err == nil {
		t.Error("the server answers after Down")
	}
	if _, err := cluster.PID(); err == nil {
		t.Error("there is a process id after Down")
	}
	if err := cluster.Up(t.Context()); err != nil {
		t.Fatal(err)
	}

	if got := value[int](t, db, "SELECT id FROM kept"); got != 7 {
		t.Errorf("kept %d; want 7", got)
	}
	if after, err := cluster.PID(); err != nil || after == before {
		t.Errorf("PID %d, %v; want another than %d", after, err, before)
	}
	if err := cluster.Stop(); err != nil {
		t.Error(err)
	}
	mustBeGone(t, cluster.URL())
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

func start(t *testing.T, settings pgtest.Settings) *pgtest.Cluster {
	t.Helper()
	cluster, err := pgtest.Start(t.Context(), "", settings)
	if errors.Is(err, pgtest.ErrNotInstalled) {
		pgtest.Unavailable(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	return cluster
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

func mustBeGone(t *testing.T, address string) {
	t.Helper()
	if err := gone(address); err != nil {
		t.Error(err)
	}
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
