package address

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/lib/pq"

	"github.com/amends-dev/amends/internal/address/file"
)

const urlForm = "write postgres://USER:PASSWORD@HOST:5432/DATABASE, and %-encode what is not a letter or a digit in the password"

// readURL reads what stands behind postgres:. No error of net/url is passed on: it shows the
// address, and often the password is what it could not read.
func readURL(scheme, rest string) (*Address, error) {
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok || rest == "" {
		return nil, fmt.Errorf("%s: names no database; %s", scheme, urlForm)
	}
	if strings.Contains(rest, "#") {
		return nil, errors.New("a # in the address of the Postgres database ends it; write %23, as in a password")
	}
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil {
		return nil, unreadable(rest, err)
	}
	q, err := url.ParseQuery(u.RawQuery)
	switch {
	case err != nil:
		return nil, errors.New("the parameters of the Postgres database cannot be read; " +
			"write them as ?sslmode=require&connect_timeout=5, with %-encoded values")
	case strings.Contains(u.Host, ",") && u.Port() != "": // it would be taken for one host of that name
		return nil, errSeveral
	case strings.Contains(u.EscapedPath(), "@"): // a password with a / in it
		return nil, errors.New("an @ stands behind the host of the Postgres database; " + urlForm)
	}
	for key := range q {
		if !file.Parameter.MatchString(key) {
			return nil, errName
		}
	}
	a, err := read(scheme + "://" + rest)
	if err != nil {
		return nil, err
	}
	_, a.secret = u.User.Password()
	for _, key := range []string{"password", "sslkey"} { // a key may be written out: sslinline
		if q.Get(key) != "" && (key == "password" || q.Has("sslinline")) {
			q.Set(key, hidden)
			u.RawQuery, a.secret = q.Encode(), true
		}
	}
	a.shown = u.Redacted()
	return a, nil
}

const hidden = "xxxxx"

var errSeveral = errors.New("the address of the Postgres database has several hosts and a port among them; " +
	"write the ports at the end: postgres://a,b/database?port=5432,5433")

// unreadable says why what stands behind postgres:// is no URL.
func unreadable(rest string, err error) error {
	authority, _, _ := strings.Cut(rest, "/")
	host := authority[strings.LastIndex(authority, "@")+1:]
	switch {
	case strings.HasPrefix(host, "%2F") || strings.HasPrefix(host, "%2f"):
		return errors.New("the folder of a socket cannot be the host of a URL; write postgres:///DATABASE?host=/run/postgresql")
	case strings.Contains(host, ",") && strings.Contains(host, ":"):
		return errSeveral
	}
	if _, ok := errors.AsType[url.EscapeError](err); ok {
		return errors.New("a % in the address of the Postgres database stands before no two hexadecimal digits; write %25 for a %, as in a password")
	}
	return errors.New("the address of the Postgres database cannot be read; " + urlForm)
}

// keys are the words of lib/pq, and how other drivers say some of them.
var (
	keys   = words()
	others = map[string]string{
		"server": "host", "hostname": "host", "username": "user", "uid": "user", "userid": "user",
		"pwd": "password", "passwd": "password", "pass": "password", "db": "dbname",
	}
)

func words() []string {
	words := []string{"database"}
	for f := range reflect.TypeFor[pq.Config]().Fields() {
		if key := f.Tag.Get("postgres"); key != "" && key != "-" {
			words = append(words, key)
		}
	}
	return words
}

// readPairs reads host=… dbname=….
func readPairs(text string) (*Address, error) {
	a, err := read(text)
	if err != nil {
		return nil, err
	}
	c := a.Postgres
	a.secret = written(text, "password") || written(text, "sslkey")
	a.shown = fmt.Sprintf("host=%s port=%d dbname=%s user=%s", quoted(c.Host), c.Port, quoted(c.Database), quoted(c.User))
	if a.secret {
		a.shown += " password=" + hidden
	}
	return a, nil
}

// quoted is a value as pairs have it.
func quoted(value string) string {
	if value != "" && !strings.ContainsAny(value, ` '\`) {
		return value
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

func written(text, key string) bool {
	return regexp.MustCompile(`(^|[\s'])` + key + `\s*=`).MatchString(text)
}

var errName = errors.New("a parameter of the Postgres database has a name that cannot be one; " +
	"write NAME=VALUE, with spaces between pairs, or with & between them in a URL, and %-encode or quote what is special in a value")

// read has lib/pq read an address. It takes what it does not know for settings of the server, so
// what is near to a word of its own is refused here.
func read(text string) (*Address, error) {
	if _, err := pq.NewConfig(""); err != nil { // the environment's, which the address has nothing to do with
		return nil, fmt.Errorf("read the environment of Postgres: %w", withoutService(err))
	}
	c, err := pq.NewConfig(text)
	if err != nil {
		return nil, refused(err)
	}
	if separated(&c) {
		return nil, errors.New("semicolons separate the pairs of the address; write spaces: host=… dbname=… user=… password='…'")
	}
	for key := range c.Runtime {
		right := others[strings.ToLower(key)]
		if slices.Contains(keys, strings.ToLower(key)) {
			right = strings.ToLower(key)
		}
		switch {
		case right != "":
			return nil, fmt.Errorf("the address of the Postgres database has the parameter %q; write %s", key, right)
		case !file.Parameter.MatchString(key):
			return nil, errName
		}
	}
	if !file.Pairs.MatchString(text) || slices.ContainsFunc(keys, func(key string) bool { return written(text, key) }) {
		return &Address{Postgres: &c}, nil
	}
	return nil, errors.New("the address has pairs, and none of them names a database; " +
		"write host=… dbname=… for Postgres, and ./NAME for a file with an = sign in its name")
}

// ado is how other drivers go on behind the first pair.
var ado = regexp.MustCompile(`;\s*[A-Za-z][A-Za-z _]*=`)

// separated reports whether a value goes on as pairs of another driver do. A password may be like
// that.
func separated(c *pq.Config) bool {
	v := reflect.ValueOf(*c)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Type.Kind() == reflect.String && f.Name != "Password" && ado.MatchString(v.Field(i).String()) {
			return true
		}
	}
	for _, value := range c.Runtime {
		if ado.MatchString(value) {
			return true
		}
	}
	return false
}

// wrong names the parameter in an error of lib/pq.
var wrong = regexp.MustCompile(`^pq: (?:wrong value for|unsupported) "?([a-z_]+)"?`)

// refused is an error of lib/pq without the values in it. A password with a space in it, and
// without quotes, is in two of them.
func refused(err error) error {
	switch m := wrong.FindStringSubmatch(err.Error()); {
	case m != nil:
		return fmt.Errorf("%s of the Postgres database has a value that it cannot have; look it up in the manual of lib/pq", m[1])
	case strings.Contains(err.Error(), "could not match"):
		return errors.New("the address of the Postgres database has more or fewer ports than hosts; write one port, or one for each")
	case strings.Contains(err.Error(), "service"), strings.HasPrefix(err.Error(), "line "), strings.HasPrefix(err.Error(), "pq: line "):
		return errService
	}
	return errors.New("the pairs of the Postgres database cannot be read; " +
		`write host=… dbname=… user=… password='…', with quotes around a value with spaces, and \' for a quote in it`)
}

// errService hides the line of a service file that could not be read.
var errService = errors.New("the service of the Postgres database cannot be read; look for it in ~/.pg_service.conf or the file that PGSERVICEFILE names")

func withoutService(err error) error {
	if strings.Contains(err.Error(), "$") {
		return err
	}
	return errService
}
