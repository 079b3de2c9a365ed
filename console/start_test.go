package console

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/command"
)

// amends start has the program start what it says, waits for it, and shows results to who started it alone; each way in which it is not
// started has the status of the command that it is.
func TestStartByCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	sam, olga, rita := w.as("sam", Starter).token, w.as("olga", Starter).token, w.as("rita", Reader).token
	file := filepath.Join(t.TempDir(), "letter.json")
	if err := os.WriteFile(file, []byte(`{"To":"Alice"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	server := w.server.URL
	start := func(want int, says, token string, args ...string) {
		t.Helper()
		var out bytes.Buffer
		env := func(name string) string {
			return map[string]string{"AMENDS_SERVER": server, "AMENDS_TOKEN": token}[name]
		}
		line := command.Line{Args: append([]string{"start"}, args...), Env: env, In: strings.NewReader(`{"To":"Bob"}`), Out: &out, Err: &out}
		if got := command.Run(t.Context(), &line); got != want || !regexp.MustCompile(says).MatchString(out.String()) {
			t.Errorf("%q ends with %d, want %d, and says %s, want %s", args, got, want, &out, says)
		}
	}
	start(0, `(?s)outcome +started\n.*status +completed\n.*send +sent +"sent"`, sam, "mail", "order:1", "--input", file, "--wait", "30s")
	start(0, `outcome +known before`, sam, "mail", "order:1", "--input", file)
	start(0, `(?s)"results": \{\s+"send": \{\s+"externalId": "sent",\s+"output": "sent".*"outcome": "known"`, sam, "mail", "order:1", "--input", file, "--wait", "30s", "-o", "json")
	start(0, `^\{[^}]*"status": "completed",\s+"outcome": "known"\s+\}\s*$`, olga, "mail", "order:1", "--input", file, "--wait", "30s", "-o", "json")
	start(5, `known with another input`, sam, "mail", "order:1", "--input", "-")
	start(3, `no such saga`, sam, "nothing", "order:1", "--input", "-")
	start(2, `neither a whole number nor a time`, sam, "mail", "order:2", "--input", "-", "--revision", "not a revision")
	start(2, `wait is at most 50s here`, sam, "mail", "order:2", "--input", "-", "--wait", "2m")
	start(4, `it takes the role starter`, rita, "mail", "order:2", "--input", "-")
	start(4, `token`, "another", "mail", "order:2", "--input", "-")
	start(7, `(?s)status +(waiting|running)\n.*it is started, and has not ended within 50ms`, sam, "ask", "order:1", "--input", "-", "--wait", "50ms")
	start(2, `AMENDS_TOKEN.*--not-before "soon".*--input`, "", "mail", "order:2", "--not-before", "soon")
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	server = "http://sam:secret@" + strings.TrimPrefix(other.URL, "http://")
	start(1, `no console of amends answers at http://sam:xxxxx@`, sam, "mail", "order:2", "--input", "-")
	w.server.Close()
	server = w.server.URL
	start(1, `may or may not be started.*give the same command again`, sam, "mail", "order:2", "--input", "-")
}
