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

// What is committed is in the log, though no commit waits for the disk, and none from outside can
// connect.
func TestOwnIsPrivate(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	cluster := pgtest.Own(t, pgtest.Settings{"work_mem": "7MB", "application_name": "it's ours"})
	db := open(t, cluster.URL())
	for name, want := range map[string]string{
		"fsync":                   "off",
		"synchronous_commit":      "on",
		"full_page_writes":        "on",
		"listen_addresses":        "",
		"unix_socket_directories": folder(t, cluster.URL()),
		"work_mem":                "7MB",
	} {
		if got := value[string](t, db, "SELECT current_setting($1)", name); got != want {
			t.Errorf("%s = %q; want %q", name, got, want)
		}
	}
	if info, err := os.Stat(folder(t, cluster.URL())); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder with the socket: %v, %v; want mode 0700", info.Mode(), err)
	}
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

func TestStopLeavesNothing(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	cluster := start(t, nil)
	for range 2 { // stopping twice is harmless
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	}
	mustBeGone(t, cluster.URL())
}

// A start that fails says why and leaves nothing.
func TestStartThatFails(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	for _, tc := range []struct {
		name      string
		cancelled bool
		settings  pgtest.Settings
		want      string
	}{
		{"unknown setting", false, pgtest.Settings{"no_such_setting": "1"}, `"no_such_setting"`},
		{"cancelled", true, nil, context.Canceled.Error()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if _, err := pgtest.Find(); err != nil {
				pgtest.Unavailable(t, err)
			}
			dir := reachable(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.cancelled {
				cancel()
			}
			_, err := pgtest.Start(ctx, dir, tc.settings)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v; want one that says %s", err, tc.want)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// As root the server runs as another user, who must be able to reach the folder.
func TestStartRefusesAFolderOutOfReach(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server as another user")
	}
	dir := reachable(t)
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := pgtest.Start(t.Context(), dir, nil)
	if errors.Is(err, pgtest.ErrNotInstalled) {
		pgtest.Unavailable(t, err)
	}
	if err == nil || !strings.Contains(err.Error(), "choose another folder") {
		t.Errorf("error %v; want the advice to take another folder", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A socket whose path is too long would fail with a riddle.
func TestStartRefusesALongPath(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	dir := t.TempDir() + "/" + strings.Repeat("d", 100)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := pgtest.Start(t.Context(), dir, nil)
	if errors.Is(err, pgtest.ErrNotInstalled) {
		pgtest.Unavailable(t, err)
	}
	if err == nil || !strings.Contains(err.Error(), "shorter folder") {
		t.Errorf("error %v; want the advice to take a shorter folder", err)
	}
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

// reachable is a temporary folder that the server's user may enter, other than
// those of package testing.
func reachable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgtest-") //nolint:usetesting // nobody but us may enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// folder is where a cluster lives, read from its URL.
func folder(t *testing.T, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Query().Get("host")
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
