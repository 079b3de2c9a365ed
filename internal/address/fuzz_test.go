package address

import (
	"regexp"
	"strings"
	"testing"
)

const canary = "S3CRtzq"

// named is where an error may repeat a piece of an address: the name of a scheme or of a parameter.
var named = regexp.MustCompile(`[\w.+-]*` + canary + `[\w.+-]*\s*([=&:]|$)`)

// Whatever stands around a password, it is in no error; what is shown of an address leads to the
// same file, and to no password.
func FuzzParse(f *testing.F) {
	for _, around := range [][2]string{
		{"postgres://app:", "%ZZET@h/db"}, {"postgres://app:", "@h/db"}, {"postgres://app:x/", "@h/db"}, {"postgres://app:1#", "@h/db"},
		{"postgresql://app@h/db?password=", ""}, {"postgresql://app@h/db?sslinline=1&sslkey=", "&x=1"}, {"POSTGRES://app:", ""},
		{"host=h password=", " dbname=db"}, {"host=h password='a ", "'"}, {"host=h password=a ", " user=b"}, {"TimeZone=UTC password=", ""},
		{"Host=h;Password=", ""}, {"Server=h;Pwd=", ";Database=d"}, {"mysql://app:", "@h/db"}, {"app:", "@h/db"}, {"//app:", "@h/db"},
		{"file:app:", "@h"}, {"file:x.db?password=", ""}, {"file:x.db?mode=memory&cache=", ""}, {"sqlite:x%20", "%3F.db?mode=ro"},
		{"sqlite:///", ".db"}, {"", ".db"}, {"./", "=x"}, {"a/b", "?mode=ro"}, {"C:\\", ".db"}, {"service=", ""}, {"file://localhost/", ""},
	} {
		f.Add(around[0], around[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		text := before + canary + after
		a, err := Parse(text)
		switch {
		case err != nil:
			if strings.Contains(err.Error(), canary) && !named.MatchString(text) {
				t.Errorf("%q: %v", text, err)
			}
		case a.Postgres == nil:
			for _, again := range []string{a.String(), a.URI()} {
				if b, err := Parse(again); err != nil || b.File != a.File {
					t.Errorf("%q is %q, shown as %q, which is %+v, %v", text, a.File, again, b, err)
				}
			}
		case strings.Contains(a.Postgres.Password, canary):
			if !a.Secret() || strings.Count(text, canary) == 1 && strings.Contains(a.String(), canary) {
				t.Errorf("%q is shown as %q, secret %t", text, a, a.Secret())
			}
		}
	})
}
