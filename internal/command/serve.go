package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/serving"
	"github.com/amends-dev/amends/saga"
	stores "github.com/amends-dev/amends/store"
)

// serveIn says where the console is, and to whom.
type serveIn struct {
	Addr   string `flag:"addr" doc:"where it listens; :0 picks a free port of this machine"`
	Tokens string `flag:"tokens" doc:"the file that says who has which token"`
	Hosts  commas `flag:"host" doc:"a name under which it is asked for, besides this machine's own"`
	Path   string `flag:"path" doc:"the path below which it is mounted"`
	User   string `flag:"proxy-user" doc:"the header in which a proxy says who asks"`
	Roles  string `flag:"proxy-roles" doc:"the header in which a proxy says that person's roles, between commas"`
	From   commas `flag:"proxy-from" doc:"the addresses from which that is believed, such as 10.0.0.7/32"`
	Secret string `flag:"proxy-secret" doc:"the file with what the proxy sends as X-Amends-Proxy; needed where it runs on this machine"`

	console serving.Console
}

// Defaults is what is meant where nothing is said.
func (in *serveIn) Defaults() { in.Addr, in.Path = "127.0.0.1:7117", "/" }

var serveVerb = verb[serveIn, served]{
	name: "serve", args: noArguments, free: true,
	check: func(_ *app, in *serveIn) error { return usage("try: amends serve --help", in.faults()...) },
	by: func(a *app, _ *desk.Desk, ctx context.Context, in *serveIn) (*served, error) {
		return nil, a.database(ctx, func(db stores.DB) error {
			if a.given.Serve == nil {
				return errors.New("this program cannot serve the console")
			}
			in.console.DB = db
			return a.serving(ctx, &in.console, in.Addr)
		})
	},
}

// faults completes what is served, and says what is wrong with it.
func (in *serveIn) faults() (wrong desk.Wrong) {
	s := &in.console
	s.Tokens, s.Hosts, s.Path, s.User, s.Roles = in.Tokens, in.Hosts, in.Path, in.User, in.Roles
	if s.From, wrong = prefixes(in.From); (s.User == "") != (len(in.From) == 0) {
		wrong = append(wrong, "say both --proxy-user and --proxy-from, or neither: a header that anyone can send says nothing")
	}
	wrong.If((s.User == "") != (s.Roles == ""), "say both --proxy-user and --proxy-roles, or neither: without a role a person may do nothing")
	secret, more := secretOf(in.Secret, s.From)
	s.Secret, wrong = secret, append(wrong, more...)
	_, err := os.Stat(s.Tokens)
	wrong.If(s.Tokens != "" && err != nil, fmt.Sprintf("--tokens %s cannot be read (%v): amends token --file %[1]s … makes it", s.Tokens, err))
	if strings.HasPrefix(in.Addr, ":") && s.Tokens == "" && s.User == "" {
		in.Addr = "127.0.0.1" + in.Addr
	}
	return wrong
}

func prefixes(texts []string) (all []netip.Prefix, wrong desk.Wrong) {
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
func secretOf(file string, from []netip.Prefix) (secret string, wrong desk.Wrong) {
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
		s.Own = cmp.Or(osUser(), "local")
	}
	s.Ready = func(url string) error { return a.tell(served{url}, func() { fmt.Fprintln(a.out, url) }) }
	return a.given.Serve(ctx, s)
}

// consoleRoles are those that package console knows.
var consoleRoles = []string{"starter", "reader", "approver", "operator", saga.Admin}

// tokenIn says whose token it is.
type tokenIn struct {
	File  string        `flag:"file" doc:"the file; it is made when it is not there"`
	Name  string        `flag:"name" doc:"who has it: what this person does is kept under the name"`
	Roles commas        `flag:"role" doc:"starter, reader, approver, operator, admin, or a role of an approval; operator@refund is one for the saga refund alone"`
	Valid desk.Duration `flag:"valid" doc:"for how long"`
}

// Defaults is what is meant where nothing is said.
func (in *tokenIn) Defaults() { in.Valid = desk.Duration(90 * 24 * time.Hour) }

var tokenVerb = verb[tokenIn, issued]{
	name: "token", args: noArguments, free: true,
	by:    (*app).issue,
	print: func(a *app, _ *tokenIn, t *issued) { fmt.Fprintln(a.out, t.Token) },
}

// issue makes a token.
func (a *app) issue(_ *desk.Desk, _ context.Context, in *tokenIn) (*issued, error) {
	var wrong desk.Wrong
	for _, one := range []struct{ value, what string }{
		{in.File, "say --file FILE"}, {strings.TrimSpace(in.Name), "say --name NAME"}, {strings.Join(in.Roles, ""), "say --role ROLE"},
	} {
		wrong.If(one.value == "", one.what)
	}
	wrong.If(in.Valid <= 0, "--valid is longer than nothing")
	switch {
	case len(wrong) > 0:
		return nil, usage("try: amends token --help", wrong...)
	case a.given.Token == nil:
		return nil, errors.New("this program cannot make a token for the console")
	}
	known := func(role string) bool {
		name, _, _ := strings.Cut(role, "@")
		return slices.Contains(consoleRoles, name)
	}
	if !slices.ContainsFunc(in.Roles, known) {
		a.sayf("beware: none of these is a role of the console (%s), so this token opens nothing", strings.Join(consoleRoles, ", "))
	}
	text, err := a.given.Token(in.File, in.Name, in.Roles, time.Duration(in.Valid))
	if err != nil {
		return nil, err
	}
	return &issued{text}, nil
}
