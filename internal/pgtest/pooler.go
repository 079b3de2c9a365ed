package pgtest

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Pooler starts a PgBouncer before the database at an address, in a mode (session or transaction), for the length of the test, and
// returns the address by which it is reached.
func Pooler(tb TB, address, mode string) string {
	tb.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		unavailable(tb, fmt.Errorf("%w: scripts/deps.sh pgbouncer", err))
	}
	to, err := parse(address)
	attr, as, errUser := serverUser()
	l, errPort := net.Listen("tcp", "127.0.0.1:0")
	dir, errDir := os.MkdirTemp("", "pgbouncer-")
	for _, err := range []error{err, errUser, errPort, errDir} {
		if err != nil {
			tb.Fatalf("%v", err)
		}
	}
	at := l.Addr().(*net.TCPAddr) //nolint:errcheck,forcetypeassert // it listens on TCP
	_ = l.Close()
	host := to.Query().Get("host")
	if host == "" {
		host = to.Hostname() + " port=" + to.Port()
	}
	text := fmt.Sprintf("[databases]\n* = host=%s user=%s\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=%d\nunix_socket_dir=\nauth_type=any\npool_mode=%s\nlogfile=%s\n"+
		"default_pool_size=10\nignore_startup_parameters=extra_float_digits,options\n", host, to.User.Username(), at.Port, mode, filepath.Join(dir, "log"))
	file := filepath.Join(dir, "pgbouncer.ini")
	for _, err := range []error{os.WriteFile(file, []byte(text), 0o644), as.own(file), as.own(dir)} { //nolint:gosec // another user reads it
		if err != nil {
			tb.Fatalf("%v", err)
		}
	}
	cmd := exec.Command(program, file) //nolint:gosec // the program that was found
	cmd.SysProcAttr = attr
	if err := cmd.Start(); err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		if c, err := net.Dial("tcp", at.String()); err == nil {
			_ = c.Close()
			break
		}
	}
	pooled := *to
	pooled.Host, pooled.RawQuery = at.String(), url.Values{"sslmode": {"disable"}}.Encode()
	return pooled.String()
}
