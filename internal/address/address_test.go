package address

import (
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/address/file"
)

// An address means one thing. Those of issue 45, item 11 and item 9, and their kin.
func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]file.Address{
		"ledger.db":                       {File: "ledger.db"},
		" /var/lib/shop/ledger.db\n":      {File: "/var/lib/shop/ledger.db"},
		"data/year=2026/ledger.db":        {File: "data/year=2026/ledger.db"},
		"./host=db":                       {File: "./host=db"},
		"50%25.db":                        {File: "50%25.db"},
		`C:\shop\ledger.db`:               {File: `C:\shop\ledger.db`},
		"sqlite:x.db":                     {File: "x.db"},
		"sqlite://x.db":                   {File: "x.db"},
		"sqlite:///var/x.db":              {File: "/var/x.db"},
		"file:x.db":                       {File: "x.db"},
		"FILE:x.db":                       {File: "x.db"},
		"file:///var/x.db":                {File: "/var/x.db"},
		"file://localhost/var/x.db":       {File: "/var/x.db"},
		"file:x.db?mode=ro":               {File: "x.db", Mode: file.ReadOnly},
		"sqlite:x.db?mode=rw":             {File: "x.db", Mode: file.Existing},
		"file:x.db?mode=rwc":              {File: "x.db"},
		"file:my%20ledger%3F.db":          {File: "my ledger?.db"},
		"file:./host=db%20x%40y":          {File: "./host=db x@y"},
		"file:postgres%3A//app%3Apw%40h":  {File: "postgres://app:pw@h"},
		"file:a+b.db":                     {File: "a+b.db"},
		"file:sqlite%3Ax.db?mode=%72%6f":  {File: "sqlite:x.db", Mode: file.ReadOnly},
		"sqlite:x.db?":                    {File: "x.db"},
		"//srv/share/ledger.db":           {File: "//srv/share/ledger.db"},
		"file:////srv/share/my%20book.db": {File: "//srv/share/my book.db"},
	} {
		a, err := Parse(text)
		if err != nil || a.File != want.File || a.Mode != want.Mode || a.Postgres != nil || a.Secret() {
			t.Errorf("%q is %+v, %v; want %+v", text, a, err, want)
			continue
		}
		for _, again := range []string{a.String(), a.URI()} {
			if b, err := Parse(again); err != nil || b.File != a.File || again == a.URI() && b.Mode != a.Mode {
				t.Errorf("%q is shown as %q, which is %+v, %v", text, again, b, err)
			}
		}
	}
}

// Postgres has two forms, the second with any key first, and is shown without its password.
func TestParsePostgres(t *testing.T) {
	t.Parallel()
	type server struct{ host, database, user, password string }
	app := server{"h", "db", "app", "geheim"}
	for text, want := range map[string]struct {
		server

		shown  string
		secret bool
	}{
		"postgres://app@h/db":                              {server{"h", "db", "app", ""}, "postgres://app@h/db", false},
		"postgresql://app:geheim@h/db":                     {app, "postgresql://app:xxxxx@h/db", true},
		"POSTGRES://app:geheim@h/db":                       {app, "postgres://app:xxxxx@h/db", true},
		"postgres://app@h/db?password=geheim":              {app, "postgres://app@h/db?password=xxxxx", true},
		"postgres://app:ge%68eim@h/db":                     {app, "postgres://app:xxxxx@h/db", true},
		"postgres://app:ge@eim@h/db":                       {server{"h", "db", "app", "ge@eim"}, "postgres://app:xxxxx@h/db", true},
		"postgresql:///db?host=/run/postgresql&user=app":   {server{"/run/postgresql", "db", "app", ""}, "postgresql:///db?host=/run/postgresql&user=app", false},
		"host=h dbname=db user=app password=geheim":        {app, "host=h port=5432 dbname=db user=app password=xxxxx", true},
		" host = h database=db user = app":                 {server{"h", "db", "app", ""}, "host=h port=5432 dbname=db user=app", false},
		"client_encoding=UTF8 host=h dbname=db user=app":   {server{"h", "db", "app", ""}, "host=h port=5432 dbname=db user=app", false},
		"TimeZone=UTC host=h dbname=db user=app":           {server{"h", "db", "app", ""}, "host=h port=5432 dbname=db user=app", false},
		"search_path=a,b\n\thost=h\n\tdbname=db user=app":  {server{"h", "db", "app", ""}, "host=h port=5432 dbname=db user=app", false},
		"my.setting=1 host=h dbname=db user=app":           {server{"h", "db", "app", ""}, "host=h port=5432 dbname=db user=app", false},
		"password='ge;h=m x' host=h dbname='d b' user=app": {server{"h", "d b", "app", "ge;h=m x"}, "host=h port=5432 dbname='d b' user=app password=xxxxx", true},
		"postgres://app@h/db?sslinline=true&sslkey=geheim": {server{"h", "db", "app", ""}, "postgres://app@h/db?sslinline=true&sslkey=xxxxx", true},
		"host=h dbname=db user=app sslkey=geheim":          {server{"h", "db", "app", ""}, "host=h port=5432 dbname=db user=app password=xxxxx", true},
	} {
		a, err := Parse(text)
		if err != nil || a.Postgres == nil || a.File != "" {
			t.Errorf("%q is %+v, %v", text, a, err)
			continue
		}
		c := a.Postgres
		if is := (server{c.Host, c.Database, c.User, c.Password}); is != want.server || a.String() != want.shown || a.Secret() != want.secret {
			t.Errorf("%q is %+v, shown as %s, secret %t; want %+v", text, is, a, a.Secret(), want)
		}
	}
}

// What is not plainly one of the forms is refused, and the error says what to write instead.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "is empty", "  ": "is empty",
		"mysql://db/shop":                          "begin with mysql:",
		"jdbc:postgresql://h/db":                   "begin with jdbc:",
		"postgresql+psycopg2://app:S3CR@h/db":      "begin with postgresql+psycopg2:",
		"localhost:5432/shop":                      "begin with localhost:",
		"app:S3CR@h/db":                            "begin with app:",
		"//app:S3CR@h/db":                          "a user and a password",
		"http//app@x://":                           ":// in it",
		"Host=h;Password=S3CR":                     "semicolons",
		"host=h;password=S3CR":                     "semicolons",
		"Server=h;Database=d;User Id=a;Pwd=S3CR":   "semicolons",
		"User Id=a;Password=S3CR;Server=h":         "a password in it",
		"Initial Catalog=d;Server=h":               "an = sign",
		"host;h.db":                                "a semicolon",
		"Host=h Password=S3CR":                     "write ",
		"host=h dbname=db Password=S3CR":           `"Password"; write password`,
		"host=h dbname=db pwd=S3CR":                `"pwd"; write password`,
		"postgres://h/db?Password=S3CR":            `"Password"; write password`,
		"postgres://h/db?user=a;password=S3CR":     "parameters",
		"postgres://h/db?password=S3CR%ZZ":         "parameters",
		"postgres://h/db?S3CR=1&a-b=2&c%20d=3":     "a name that cannot be one",
		"password=my S3CR host=h":                  "quotes",
		"host=h password='S3CR":                    "quotes",
		"host=h port=S3CR":                         "port of the Postgres database",
		"host=h client_encoding=LATIN1":            "client_encoding of the Postgres database",
		"year=2026.db":                             "./NAME",
		"postgres:app:S3CR@h/db":                   "names no database",
		"postgres://":                              "names no database",
		"postgres://app:S3CR%ZZET@h/db":            "%25",
		"postgres://app:S3CR%@h/db":                "%25",
		"postgres://app:12#S3CR@h/db":              "%23",
		"postgres://app:S3/CR@h/db":                "%-encode",
		"postgres://app:12/S3CR@h/db":              "an @",
		"postgres://app:12?S3CR@h/db":              "a name that cannot be one",
		"postgres://app:S3CR@h:port/db":            "%-encode",
		"postgres://a:1,b:2/shop":                  "several hosts",
		"postgres://%2Frun%2Fpostgresql/shop":      "host=/run/postgresql",
		"postgres://a,b,c/shop?port=1,2":           "ports than hosts",
		"service=x-that-is-not-there dbname=db":    "service",
		"file:q.db?mode=memory&cache=shared":       "",
		"file:q.db?mode=memory":                    "store/memory",
		"file:q.db?cache=shared":                   `"cache"`,
		"sqlite:q.db?_pragma=journal_mode(DELETE)": `"_pragma"`,
		"file:q.db?immutable=1":                    `"immutable"`,
		"file:q.db?mode=wal":                       "mode=ro",
		"file:q.db?mode":                           "mode=ro",
		"file:q.db?mode=ro&mode=rw":                "more than one mode",
		"file:q.db?mode=%zz":                       "%-encoded",
		"file:q.db?S3CR@x":                         "mode=ro",
		"file:a%ZZ.db":                             "%25",
		"file:a%00.db":                             "%25",
		"file:a#b.db":                              "%23",
		"file:":                                    "names no file", "sqlite://": "names no file",
		":memory:": "store/memory", "file::memory:": "store/memory", "sqlite://:memory:": "store/memory",
		"q.db?mode=ro":      "file:NAME?mode",
		"/var/q.db?x":       "%3F",
		"file:postgres://x": ":// in it",
		"a/b://c":           ":// in it",
		"a\nb.db":           "control",
		"./x password=S3CR": "a password in it",
	} {
		a, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "S3") && !strings.Contains(text, "S3CR=") {
			t.Errorf("%q is %+v, %v; want an error that says %q, without the password", text, a, err, want)
		}
	}
}

// The environment of Postgres, and its service file, are not the address's fault, and a line of the
// file that cannot be read may be a password.
func TestParseEnvironment(t *testing.T) {
	for name, c := range map[string]struct{ value, want string }{"PGPORT": {"x", "$PGPORT"}, "PGSERVICE": {"none", "service"}} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, c.value)
			if a, err := Parse("host=h"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it is %+v, %v", a, err)
			}
		})
	}
}
