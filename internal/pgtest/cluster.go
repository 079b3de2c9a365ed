package pgtest

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed guard.sh
var guardScript string

// maxSocketPath is the longest socket path every Unix takes (104 bytes with its
// end on macOS and the BSDs, 108 on Linux).
const maxSocketPath = 103

// Settings are server parameters by name, as in postgresql.conf:
// Settings{"shared_buffers": "512MB"}. They win over [defaults].
type Settings map[string]string

// Set adds a setting written as name=value, as a command line has it.
func (s Settings) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return fmt.Errorf("setting %q: write it as name=value", text)
	}
	s[name] = value
	return nil
}

// defaults make the server private. What it has committed outlives it, see [Cluster.Down], and not
// the machine: to wait for the disk holds no rule of ours.
var defaults = Settings{
	"listen_addresses":   "",
	"max_connections":    "200", // many tests at a time, each with a pool
	"fsync":              "off",
	"synchronous_commit": "on",
	"timezone":           "UTC",
}

// Cluster is a private PostgreSQL server in a temporary folder.
type Cluster struct {
	root string
	bin  string
	as   *syscall.SysProcAttr // the user the server runs as
	env  []string

	guard *exec.Cmd
	leash *os.File // open for as long as the guard shall keep the server
}

// Start runs a new cluster in a new folder below dir (the system's temporary
// folder if dir is empty) and returns when it answers. It ends, folder and all,
// with [Cluster.Stop] or with this process, whichever comes first. env is added to
// the server's environment, as name=value.
func Start(ctx context.Context, dir string, settings Settings, env ...string) (*Cluster, error) {
	bin, err := Find()
	if err != nil {
		return nil, err
	}
	as, owner, err := serverUser()
	if err != nil {
		return nil, err
	}
	root, err := prepare(dir, settings, owner)
	if err != nil {
		return nil, fmt.Errorf("prepare a PostgreSQL cluster: %w", err)
	}
	c := &Cluster{root: root, bin: bin, as: as, env: env}
	if err := c.launch(ctx); err != nil {
		return nil, fmt.Errorf("start PostgreSQL from %s: %w", bin, errors.Join(err, os.RemoveAll(root)))
	}
	return c, nil
}

// prepare makes the folder of a cluster and writes its configuration.
func prepare(dir string, settings Settings, owner user) (string, error) {
	root, err := os.MkdirTemp(dir, "amends-pg-")
	if err != nil {
		return "", err
	}
	if root, err = filepath.Abs(root); err != nil {
		return "", err
	}
	if socket := filepath.Join(root, ".s.PGSQL.5432"); len(socket) > maxSocketPath {
		_ = os.Remove(root) // it is empty; the path is what matters
		return "", fmt.Errorf("the socket %s would have a path longer than %d bytes: choose a shorter folder", socket, maxSocketPath)
	}
	conf := filepath.Join(root, "server.conf")
	err = os.WriteFile(conf, []byte(configuration(root, settings)), 0o600)
	if err = cmp.Or(err, owner.own(conf), owner.own(root)); err != nil {
		return "", errors.Join(err, os.RemoveAll(root))
	}
	return root, nil
}

// configuration is the text of server.conf.
func configuration(root string, settings Settings) string {
	all := maps.Clone(defaults)
	maps.Copy(all, settings)
	all["unix_socket_directories"] = root
	all["port"] = "5432" // in a folder of our own every port is free

	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(all[name], "'", "''"))
	}
	return text.String()
}

// launch starts the guard and waits for its first line. The guard cleans up after
// itself, from its first moment on.
func (c *Cluster) launch(ctx context.Context) error {
	input, leash, err := os.Pipe()
	if err != nil {
		return err
	}
	defer input.Close()
	answer, output, err := os.Pipe()
	if err != nil {
		leash.Close()
		return err
	}
	defer answer.Close()

	// Files, not writers: no goroutine outlives this call, and nothing holds our
	// own output open, for which `go test` would wait.
	guard := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", "-c", guardScript, "guard.sh", c.bin, c.root)
	guard.Stdin, guard.Stdout, guard.Stderr = input, output, output
	guard.Dir = c.root
	guard.Env = c.environment()
	guard.SysProcAttr = c.as
	err = guard.Start()
	output.Close()
	if err != nil {
		leash.Close()
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("the user it runs as may not enter %s; choose another folder: %w", c.root, err)
		}
		return err
	}
	c.guard, c.leash = guard, leash

	if err := awaitReady(ctx, answer); err != nil {
		return errors.Join(err, c.Stop())
	}
	return nil
}

// awaitReady reads the guard's answer, until ctx ends.
func awaitReady(ctx context.Context, answer *os.File) error {
	stop := context.AfterFunc(ctx, func() { _ = answer.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	lines := bufio.NewReader(answer)
	first, err := lines.ReadString('\n')
	if err == nil && first == "ready\n" {
		return nil
	}
	rest, _ := io.ReadAll(lines) // whatever there is; the failure is already known
	return cmp.Or(ctx.Err(), errors.New(strings.TrimSpace(first+string(rest))))
}

// environment is ours without the variables by which a user's own PostgreSQL
// would be mistaken for this one.
func (c *Cluster) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") })
	return append(append(env, "HOME="+c.root, "LC_ALL=C"), c.env...)
}

// URL leads to the server's own database. [Database] makes others.
func (c *Cluster) URL() string {
	return (&url.URL{
		Scheme: "postgres",
		User:   url.User("postgres"),
		Path:   "/postgres",
		RawQuery: url.Values{
			"host":    {c.root},
			"sslmode": {"disable"},
		}.Encode(),
	}).String()
}

// PID is the process id of the server's parent process, for measuring.
func (c *Cluster) PID() (int, error) {
	text, err := os.ReadFile(filepath.Join(c.root, "data", "postmaster.pid"))
	if err != nil {
		return 0, fmt.Errorf("the server is down: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strconv.Atoi(strings.TrimSpace(first))
}

// Down stops the server as a crash would: at once, without a checkpoint. Its data
// stay, for [Cluster.Up].
func (c *Cluster) Down(ctx context.Context) error {
	return c.control(ctx, "stop", "-m", "immediate", "-w")
}

// Up starts the server again after [Cluster.Down]; it recovers from its log first.
func (c *Cluster) Up(ctx context.Context) error {
	return c.control(ctx, "start", "-l", filepath.Join(c.root, "log"), "-w")
}

func (c *Cluster) control(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "pg_ctl"), append(args, "-D", filepath.Join(c.root, "data"))...)
	cmd.Dir = c.root
	cmd.Env = c.environment()
	cmd.SysProcAttr = c.as
	// To a file: a server that pg_ctl starts would hold a pipe open for ever.
	output, err := os.CreateTemp("", "amends-pg-ctl-")
	if err != nil {
		return err
	}
	defer os.Remove(output.Name()) //nolint:errcheck // a temporary file
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(output.Name())
		return fmt.Errorf("pg_ctl %s: %w: %s", args[0], err, strings.TrimSpace(string(said)))
	}
	return nil
}

// Stop ends the server and removes its folder. Stopping twice is harmless.
func (c *Cluster) Stop() error {
	if c.leash == nil {
		return nil
	}
	c.leash.Close()
	c.leash = nil
	if err := c.guard.Wait(); err != nil {
		// How it exits does not matter, what it leaves does.
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			return fmt.Errorf("wait for the guard of %s: %w", c.root, err)
		}
	}
	if _, err := os.Stat(c.root); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the guard left %s behind: stop what runs there and remove it", c.root)
	}
	return nil
}
