package docs_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/examples/service/outside"
	world "github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/internal/pace"
)

// machine is what a Debian has and the machine of a test has not: a unit is started from its own lines, as its
// settings say, and one that is killed is started again. Every path of the page is below $ROOT.
const machine = `
cd "$CHECKOUT"
mkdir -p "$ROOT"/{bin,tmp,usr/local/bin,etc/systemd/system,var/lib}
export TMPDIR=$ROOT/tmp PATH=$ROOT/usr/local/bin:$PATH # a ledger in a folder for temporary files has no witness
apt-get() { :; }
useradd() { :; }
runuser() { shift 3; "$@"; }
install() {
	local kept=()
	while [ $# -gt 0 ]; do case $1 in -o | -g) shift ;; *) kept+=("$1") ;; esac; shift; done
	command install "${kept[@]}"
}
of() { sed -n "s/^$2=//p" "$ROOT/etc/systemd/system/$1.service"; }
begin() {
	(
		set -a
		. "$(of "$1" EnvironmentFile)"
		STATE_DIRECTORY=$ROOT/var/lib/$(of "$1" StateDirectory)
		cd "$(of "$1" WorkingDirectory)" && exec $(of "$1" ExecStart)
	) >>"$ROOT/journal" 2>&1 &
	echo $! >"$ROOT/$1.pid"
}
end() { local pid=$(cat "$ROOT/$1.pid"); kill "-$2" "$pid"; wait "$pid"; true; }
systemctl() {
	local verb=$1 unit; shift
	for unit; do case $verb,$unit in
		*,-*) ;;
		enable,* | start,*) begin "$unit" ;;
		stop,*) end "$unit" TERM ;;
		restart,*) end "$unit" TERM; begin "$unit" ;;
		kill,*) end "$unit" KILL; [ "$(of "$unit" Restart)" = always ] && begin "$unit" ;;
	esac; done
}
`

// docs/deploying.md, typed as it is written: the service is installed, started from its unit, killed, upgraded, and
// gets its ledger from a backup, while a shop sells and sends its webhooks again and again. Each order has one invoice.
// By day it is killed at rest: what is in doubt is looked up a minute later, and all is after a restore.
func TestDeployed(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	for _, program := range []string{"sqlite3", "curl", "install"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the page needs %s", program)
		}
	}
	root, service, o := t.TempDir(), freePort(t), outside.New()
	t.Cleanup(o.Close)
	s := newShell(t)
	s.typed("machine", "export ROOT="+root)
	s.typed("machine", machine)
	here := []string{
		"/usr/local/bin/", root + "/usr/local/bin/", "/etc/", root + "/etc/", "/var/lib/", root + "/var/lib/", " bin/", " " + root + "/bin/",
		"127.0.0.1:8080", service, "127.0.0.1:7117", freePort(t),
		"https://shop.example.com", o.ShopURL, "https://books.example.com", o.BooksURL, "whsec_cmVwbGFjZSB0aGlzIGJ5IHRoZSBzaG9wJ3Mgb3du", outside.Secret,
	}
	_, text, _ := strings.Cut(strings.NewReplacer(here...).Replace(read(t, "deploying.md")), "\n### ")
	text, _, _ = strings.Cut(text, "\n## ")
	sections := map[string]string{}
	for section := range strings.SplitSeq(text, "\n### ") {
		name, body, _ := strings.Cut(section, "\n")
		sections[name] = body
	}
	play := func(name string) { t.Helper(); s.play("deploying.md, "+name, sections[name]) }
	sold := map[string]world.Webhook{}
	sell := func(id string, cents int64) {
		t.Helper()
		sold[id] = o.Put(id, "paid", cents)
		s.typed("machine", "curl -s --retry 300 --retry-delay 1 --retry-all-errors --fail http://"+service+"/healthz")
		for _, hook := range sold { // each is heard of again
			if err := world.Tell(t.Context(), "http://"+service+"/webhooks/shop", outside.Secret, hook); err != nil {
				t.Fatal(err)
			}
		}
	}
	expect := func(want string) {
		t.Helper()
		for began := time.Now(); o.Invoices() != want; <-time.After(20 * time.Millisecond) {
			if time.Since(began) > 2*time.Minute {
				t.Fatalf("there is\n%s\nand not\n%s\n%s", o.Invoices(), want, read(t, filepath.Join(root, "journal")))
			}
		}
	}

	play("Install")
	for _, file := range []string{"amends/service.env", "systemd/system/amends-service.service", "systemd/system/amends-console.service"} {
		file = filepath.Join(root, "etc", file)
		if err := os.WriteFile(file, []byte(strings.NewReplacer(here...).Replace(read(t, file))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	play("Configure")
	play("Migrate and start")
	sell("1", 100)
	one, two, three := "inv_0001 of shop:order:1: 100", ", inv_0002 of shop:order:2: 200", ", inv_0003 of shop:order:3: 300"
	expect(one)
	play("Upgraded")
	sell("2", 200)
	expect(one + two)
	play("Backed up")
	sell("3", 300)
	expect(one + two + three)
	if pace.AtNight() {
		three += ", inv_0004 of shop:order:4: 400"
		sell("4", 400)
	}
	play("Killed")
	sell("1", 100)
	expect(one + two + three)

	stopped, begun, told := strings.Cut(sections["Restored"], "Started now")
	s.play("deploying.md, Restored", stopped)
	_, status := s.run("systemctl start amends-service; wait $(cat $ROOT/amends-service.pid)")
	journal := read(t, filepath.Join(root, "journal"))
	if !told || status != "1" || !strings.Contains(journal, "amends recover --restored") || !strings.Contains(journal, "its witness ("+root+"/var/lib/amends/") {
		t.Fatalf("a ledger that was put back goes on, or its witness is not where as_amends looks (%s): %s", status, journal)
	}
	s.play("deploying.md, Restored", begun)
	sell("1", 100) // of the third the ledger knows nothing
	if pace.AtNight() {
		three += ", inv_0005 of shop:order:5: 500"
		sell("5", 500)
	}
	expect(one + two + three)
	s.typed("machine", "systemctl stop amends-service amends-console")
	if o.Invoices() != one+two+three {
		t.Errorf("in the end there is %s", o.Invoices())
	}
}

// freePort is an address at which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
