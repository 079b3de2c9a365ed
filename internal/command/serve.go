package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/serving"
	"github.com/amends-dev/amends/saga"
	stores "github.com/amends-dev/amends/store"
)

func (a *app) serve() *cobra.Command {
	var s serving.Console
	var addr, secret string
	var from []string
	cmd := &cobra.Command{
		Use: "serve [flags]", Args: noArguments,
		Short: "Serve the console: pages, /api/v1 and /metrics",
		Long: `Serve the console until it is stopped: what needs a person, every work, destinations, what was heard, jobs and duplicates as
pages; the same and every verb as JSON under /api/v1; /metrics for Prometheus, /healthz and /readyz.

Alone it listens on this machine only, and prints an address with a token that makes you an admin while it runs. For others write
tokens into a file (amends token), or let a proxy say who asks. Put a proxy with TLS before it: it speaks HTTP.`,
		Example: `  amends serve
  amends serve --tokens /etc/shop/amends-tokens --addr :7117 --host ops.example.com
  amends serve --proxy-user X-Forwarded-User --proxy-roles X-Forwarded-Groups --proxy-from 10.0.0.7/32 --addr :7117 --host ops.example.com`,
	}
	fl := cmd.Flags()
	fl.StringVar(&addr, "addr", "127.0.0.1:7117", "where it listens; :0 picks a free port of this machine")
	fl.StringVar(&s.Tokens, "tokens", "", "the file that says who has which token")
	fl.StringSliceVar(&s.Hosts, "host", nil, "a name under which it is asked for, besides this machine's own")
	fl.StringVar(&s.Path, "path", "/", "the path below which it is mounted")
	fl.StringVar(&s.User, "proxy-user", "", "the header in which a proxy says who asks")
	fl.StringVar(&s.Roles, "proxy-roles", "", "the header in which a proxy says that person's roles, between commas")
	fl.StringSliceVar(&from, "proxy-from", nil, "the addresses from which that is believed, such as 10.0.0.7/32")
	fl.StringVar(&secret, "proxy-secret", "", "the file with what the proxy sends as X-Amends-Proxy; needed where it runs on this machine")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var wrong []string
		if s.From, wrong = prefixes(from); (s.User == "") != (len(from) == 0) {
			wrong = append(wrong, "say both --proxy-user and --proxy-from, or neither: a header that anyone can send says nothing")
		}
		if (s.User == "") != (s.Roles == "") {
			wrong = append(wrong, "say both --proxy-user and --proxy-roles, or neither: without a role a person may do nothing")
		}
		var more []string
		s.Secret, more = secretOf(secret, s.From)
		wrong = append(wrong, more...)
		if _, err := os.Stat(s.Tokens); s.Tokens != "" && err != nil {
			wrong = append(wrong, fmt.Sprintf("--tokens %s cannot be read (%v): amends token --file %[1]s … makes it", s.Tokens, err))
		}
		if strings.HasPrefix(addr, ":") && s.Tokens == "" && s.User == "" {
			addr = "127.0.0.1" + addr
		}
		if len(wrong) > 0 {
			return usage("try: amends serve --help", wrong...)
		}
		return a.database(cmd.Context(), func(db stores.DB) error {
			if a.given.Serve == nil {
				return errors.New("this program cannot serve the console")
			}
			s.DB = db
			return a.serving(cmd.Context(), &s, addr)
		})
	}
	return cmd
}

func prefixes(texts []string) (all []netip.Prefix, wrong []string) {
	for _, text := range texts {
		if !strings.Contains(text, "/") {
			if addr, err := netip.ParseAddr(text); err == nil {
				text = netip.PrefixFrom(addr, addr.BitLen()).String()
			}
		}
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("--proxy-from %q is no address such as 10.0.0.7/32", text))
		case p.Bits() == 0:
			wrong = append(wrong, fmt.Sprintf("--proxy-from %q is everywhere: a header that anyone can send says nothing", text))
		}
		all = append(all, p)
	}
	return all, wrong
}

// shortestSecret is how many bytes a proxy's secret has at least.
const shortestSecret = 16

// secretOf reads the secret of a proxy. One on this machine needs it: every user of the machine can send the headers from there.
func secretOf(file string, from []netip.Prefix) (secret string, wrong []string) {
	if file == "" {
		if slices.ContainsFunc(from, func(p netip.Prefix) bool {
			return p.Overlaps(netip.MustParsePrefix("127.0.0.0/8")) || p.Contains(netip.IPv6Loopback())
		}) {
			wrong = append(wrong, "--proxy-from names this machine, of which every user could say who they are: say --proxy-secret FILE, too, and have the proxy send what is in it as X-Amends-Proxy")
		}
		return "", wrong
	}
	text, err := os.ReadFile(file)
	if secret = strings.TrimSpace(string(text)); err != nil || len(secret) < shortestSecret {
		wrong = append(wrong, fmt.Sprintf("--proxy-secret %s cannot be read, or has fewer than %d bytes (%v)", file, shortestSecret, err))
	}
	return secret, wrong
}

// served is where the console is.
type served struct {
	URL string `json:"url"` // the address to open, with its token
}

// issued is a token that was made.
type issued struct {
	Token string `json:"token"` // shown once
}

// serving listens, and serves until it is stopped. Only this machine may ask where no one is known but who
// started it.
func (a *app) serving(ctx context.Context, s *serving.Console, addr string) (err error) {
	if s.Listener, err = new(net.ListenConfig).Listen(ctx, "tcp", addr); err != nil {
		return &desk.Failure{Code: desk.Failed, What: "the console cannot listen on " + addr, Why: err, Next: "another one may run already; say another --addr, such as 127.0.0.1:0"}
	}
	if at, ok := s.Listener.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() && s.Tokens == "" && s.User == "" {
		_ = s.Listener.Close()
		return usage("make tokens with: amends token --file FILE --name NAME --role ROLE; then: amends serve --tokens FILE",
			"other machines reach "+addr+", and it is not said who may ask: say --tokens FILE or --proxy-user HEADER")
	}
	if s.Tokens == "" && s.User == "" {
		if s.Own = osUser(); s.Own == "" {
			s.Own = "local"
		}
	}
	s.Ready = func(url string) error {
		if a.json {
			return a.printJSON(served{url})
		}
		fmt.Fprintln(a.out, url)
		return nil
	}
	return a.given.Serve(ctx, s)
}

// consoleRoles are those that package console knows.
var consoleRoles = []string{"starter", "reader", "approver", "operator", saga.Admin}

func (a *app) token() *cobra.Command {
	var file, name string
	var roles []string
	var valid time.Duration
	cmd := &cobra.Command{
		Use: "token --file FILE --name NAME --role ROLE [flags]", Args: noArguments,
		Short: "Make a token for the console, and add it to a file",
		Long: `Make a token for a person or a program that uses the console, and add it to a file for "amends serve --tokens FILE", which reads the
file again by itself. The token goes to stdout and is nowhere else: the file has its SHA-256, the name, the roles and the
end. To take it away, delete its line.

Roles: starter starts instances and reads where those stand; reader sees everything but bodies; approver votes; operator says what people say, and sees bodies; admin does all of that, pauses
everything and votes on everything. Others, such as finance, count in approvals.`,
		Example: `  amends token --file /etc/shop/amends-tokens --name maria --role operator --role finance
  amends token --file /etc/shop/amends-tokens --name prometheus --role reader --valid 8760h`,
	}
	fl := cmd.Flags()
	fl.StringVar(&file, "file", "", "the file; it is made when it is not there")
	fl.StringVar(&name, "name", "", "who has it: what this person does is kept under the name")
	fl.StringSliceVar(&roles, "role", nil, "starter, reader, approver, operator, "+saga.Admin+", or a role of an approval; operator@refund is one for the saga refund alone")
	fl.DurationVar(&valid, "valid", 90*24*time.Hour, "for how long")
	cmd.RunE = func(*cobra.Command, []string) error {
		var wrong []string
		for _, one := range []struct{ value, what string }{{file, "say --file FILE"}, {strings.TrimSpace(name), "say --name NAME"}, {strings.Join(roles, ""), "say --role ROLE"}} {
			if one.value == "" {
				wrong = append(wrong, one.what)
			}
		}
		if valid <= 0 {
			wrong = append(wrong, "--valid is longer than nothing")
		}
		switch {
		case len(wrong) > 0:
			return usage("try: amends token --help", wrong...)
		case a.given.Token == nil:
			return errors.New("this program cannot make a token for the console")
		}
		known := func(role string) bool {
			name, _, _ := strings.Cut(role, "@")
			return slices.Contains(consoleRoles, name)
		}
		if !slices.ContainsFunc(roles, known) {
			a.sayf("beware: none of these is a role of the console (%s), so this token opens nothing", strings.Join(consoleRoles, ", "))
		}
		text, err := a.given.Token(file, name, roles, valid)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(issued{text})
		}
		fmt.Fprintln(a.out, text)
		return nil
	}
	return cmd
}
