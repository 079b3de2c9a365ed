package sagahttp

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// secrets are texts of a request that no error shows, whoever repeats them. The longest comes first.
type secrets []string

// secretName matches the names of headers and query values that hold credentials.
var secretName = regexp.MustCompile(`(?i)key|token|secret|auth|pass|sign|session|cookie`)

// leastSecret is how long a credential is at least: what is shorter is in too many words.
const leastSecret = 8

// secretsOf are Options.Secrets and the credentials of a request as it is sent: of headers and query values that are called so, and of query
// values that Options.Authorize added.
func (c *Client) secretsOf(r Request, req *http.Request) secrets {
	all := slices.Clone(secrets(c.opts.Secrets))
	for name, values := range req.Header {
		if secretName.MatchString(name) && name != http.CanonicalHeaderKey(c.opts.KeyHeader) {
			all.add(values)
		}
	}
	for name, values := range req.URL.Query() {
		if secretName.MatchString(name) || !r.Query.Has(name) {
			all.add(values)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// add takes credentials, and the parts of which they consist: the token behind Bearer, user and password of Basic.
func (s *secrets) add(values []string) {
	for _, value := range values {
		parts := append(strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" ,;", r) }), value)
		for _, part := range parts {
			if plain, err := base64.StdEncoding.DecodeString(part); err == nil {
				_, password, _ := strings.Cut(string(plain), ":")
				parts = append(parts, password)
			}
			if _, text, is := strings.Cut(part, "="); is {
				parts = append(parts, strings.Trim(text, `"`))
			}
		}
		for _, part := range parts {
			if len(part) >= leastSecret {
				*s = append(*s, part, url.QueryEscape(part))
			}
		}
	}
}

// without is a text in which the secrets are not.
func (s secrets) without(text string) string {
	for _, secret := range s {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}
