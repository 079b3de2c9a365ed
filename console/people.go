package console

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/saga"
)

// The roles that the console knows. A person may have others, which count in approvals. One with a saga behind it, such as
// "operator@refund" or "finance@refund", is a role where that saga is named, and none elsewhere.
const (
	Starter  = "starter" // starts instances, and reads where those stand
	Reader   = "reader"
	Approver = "approver"
	Operator = "operator"
	Admin    = saga.Admin
)

// Roles are those that the console knows, the one that may least first.
func Roles() []string { return []string{Starter, Reader, Approver, Operator, Admin} }

// Person is who asks. Without a name it is not known who does.
type Person struct {
	Name  string   `json:"name"`
	Roles []string `json:"roles"`
}

// may reports whether the person has a role, or one that includes it. An operator may vote, too: what is decided about is shown to
// both, and whether the vote counts is said by the roles that the approval names.
func (p *Person) may(role string) bool {
	has := func(role string) bool { return slices.Contains(p.Roles, role) }
	return has(Admin) || has(role) || role == Reader && (has(Approver) || has(Operator)) || (role == Approver || role == Starter) && has(Operator)
}

// in is the person where a saga is named: with the roles that are for it, too. Each role stays as it is written besides: a proxy's group
// may be called finance@example.com.
func (p *Person) in(saga string) Person {
	of := Person{Name: p.Name, Roles: slices.Clone(p.Roles)}
	for _, role := range p.Roles {
		if name, only, bound := strings.Cut(role, "@"); bound && only == saga && saga != "" {
			of.Roles = append(of.Roles, name)
		}
	}
	return of
}

// somewhere is the person with every role, whatever saga it is for.
func (p *Person) somewhere() Person {
	of := Person{Name: p.Name}
	for _, role := range p.Roles {
		name, _, _ := strings.Cut(role, "@")
		of.Roles = append(of.Roles, name)
	}
	return of
}

// sagas are those that the person has roles for alone.
func (p *Person) sagas() (all []string) {
	for _, role := range p.Roles {
		if _, only, bound := strings.Cut(role, "@"); bound && !slices.Contains(all, only) {
			all = append(all, only)
		}
	}
	return all
}

// Tokens are who signs in with which token. Of a token only the SHA-256 is kept.
type Tokens struct {
	file string // "": none

	mu    sync.Mutex
	read  fs.FileInfo      // the file as it was read
	kept  map[string]token // in the file, by the digest
	lent  map[string]token // in this process only
	wrong error            // what of the file cannot be read
	told  string           // the same, once it was told
}

// token is a line of the file.
type token struct {
	SHA256 string `json:"sha256"`
	Person
	Expires time.Time `json:"expires"`
}

// OpenTokens reads who has which token from a file: a JSON object a line, as [Tokens.Issue] and the
// command "amends token" write it. It is read again when it has changed: who deletes a line takes
// the token away. One that is not there yet has none. Without a file ("") only this process issues tokens, and they end with it.
func OpenTokens(file string) (*Tokens, error) {
	t := &Tokens{file: file}
	t.refresh()
	if t.wrong != nil {
		return nil, fmt.Errorf("read the tokens: %w", t.wrong)
	}
	return t, nil
}

// Issue makes a token for a person, valid for so long, and adds it to the file where there is one.
// What it returns is nowhere else.
func (t *Tokens) Issue(p Person, valid time.Duration) (string, error) {
	if p.Name = strings.TrimSpace(p.Name); p.Name == "" || len(p.Roles) == 0 || valid <= 0 {
		return "", errors.New("issue a token: it needs a name, a role and a time for which it is valid")
	}
	text := "amends_" + random()
	one := token{SHA256: digest(text), Person: p, Expires: time.Now().Add(valid).UTC().Truncate(time.Second)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == "" {
		if t.lent == nil {
			t.lent = map[string]token{}
		}
		t.lent[one.SHA256] = one
		return text, nil
	}
	line, err := json.Marshal(one)
	if err != nil {
		return "", err
	}
	if err := appendLine(t.file, line); err != nil {
		return "", fmt.Errorf("issue a token: %w", err)
	}
	return text, nil
}

// appendLine adds a line to a file, behind whatever its last one ends with.
func appendLine(file string, line []byte) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		end := make([]byte, 1)
		if _, err := f.ReadAt(end, info.Size()-1); err == nil && end[0] != '\n' {
			line = append([]byte("\n"), line...)
		}
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// of says who has a token. Digests are compared, so that the time it takes tells nothing of a token.
func (t *Tokens) of(text string, now time.Time) (Person, error) {
	if text == "" {
		return Person{}, nil
	}
	return t.by(digest(text), now)
}

// by says whose token has a digest.
func (t *Tokens) by(d string, now time.Time) (Person, error) {
	if t == nil {
		return Person{}, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refresh()
	for _, all := range []map[string]token{t.kept, t.lent} {
		if one, has := all[d]; has && now.Before(one.Expires) {
			return one.Person, nil
		}
	}
	told := t.told
	if t.told = ""; t.wrong != nil {
		t.told = t.wrong.Error()
	}
	if t.told == told { // a stranger's requests fill no log
		return Person{}, nil
	}
	return Person{}, t.wrong
}

// own reports whether a token is one of this process, and in no file.
func (t *Tokens) own(text string) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, has := t.lent[digest(text)]
	return has
}

// refresh reads the file again if it has changed.
func (t *Tokens) refresh() {
	if t.file == "" {
		return
	}
	info, err := os.Stat(t.file)
	if err != nil {
		if t.kept, t.read, t.wrong = nil, nil, err; errors.Is(err, fs.ErrNotExist) {
			t.wrong = nil
		}
		return
	}
	if t.read != nil && info.ModTime().Equal(t.read.ModTime()) && info.Size() == t.read.Size() && os.SameFile(info, t.read) {
		return
	}
	t.read = info
	if t.kept, t.wrong = readTokens(t.file); info.Mode().Perm()&0o002 != 0 && runtime.GOOS != "windows" {
		t.kept, t.wrong = nil, fmt.Errorf("%s: every user of this machine may write it, and let themselves in: chmod 600 %[1]s", t.file)
	}
}

// readTokens reads a file. A line that is none is told, and keeps only its own token out.
func readTokens(file string) (all map[string]token, wrong error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	all = map[string]token{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		var one token
		if err := json.Unmarshal([]byte(text), &one); err != nil || len(one.SHA256) != 64 || one.Name == "" || one.Expires.IsZero() {
			wrong = errors.Join(wrong, fmt.Errorf("%s, line %d: it is no {\"sha256\", \"name\", \"roles\", \"expires\"}; amends token writes them", file, n))
			continue
		}
		all[one.SHA256] = one
	}
	return all, errors.Join(wrong, lines.Err())
}

// Header says who asks by headers that a proxy in front of the console sets, such as
// X-Forwarded-User, and X-Forwarded-Groups with roles between commas. They count only where the
// request comes from one of the proxy's addresses; the proxy must remove what its own clients send
// under these names. Where one of them comes twice, or roles hold an "=" as distinguished names do,
// it is not known who asks. Every user of the proxy's own machine can send the headers from there: where
// others have accounts on it, let Options.Who check a secret, too.
func Header(user, roles string, from ...netip.Prefix) func(*http.Request) Person {
	return func(r *http.Request) Person {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		addr, err := netip.ParseAddr(host)
		if err != nil || !slices.ContainsFunc(from, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) }) {
			return Person{}
		}
		if len(r.Header.Values(user)) > 1 || len(r.Header.Values(roles)) > 1 || strings.Contains(r.Header.Get(roles), "=") {
			return Person{}
		}
		p := Person{Name: strings.TrimSpace(r.Header.Get(user))}
		for role := range strings.SplitSeq(r.Header.Get(roles), ",") {
			if role = strings.TrimSpace(role); role != "" {
				p.Roles = append(p.Roles, role)
			}
		}
		return p
	}
}

// sessionFor is for how long a browser is signed in.
const sessionFor = 12 * time.Hour

// session is a browser that a person signed in with. Its cookie holds an id and not the token: who reads the cookie has no token, and
// has nothing once the person signed out. It ends with the token, too, and with the process.
type session struct {
	token string // the digest of it
	place string // below which the pages of the session are, see place
	ends  time.Time
}

// sessions are the browsers of this process.
type sessions struct {
	mu  sync.Mutex
	all map[string]session // by the digest of the id
}

// begin makes a session for a token. Browsers send a cookie to every port of a host, whoever listens there. Without TLS the pages of a
// session are therefore below a path that only its browser is told, and the cookie is limited to that path.
func (ss *sessions) begin(token string, tls bool, now time.Time) (id string, s session) {
	id, s = random(), session{token: digest(token), place: desk.When(!tls, "/~"+random()), ends: now.Add(sessionFor)}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for other, is := range ss.all {
		if now.After(is.ends) {
			delete(ss.all, other)
		}
	}
	if ss.all == nil {
		ss.all = map[string]session{}
	}
	ss.all[digest(id)] = s
	return id, s
}

func (ss *sessions) of(id, place string, now time.Time) (session, bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s, ok := ss.all[digest(id)]
	return s, ok && s.place == place && now.Before(s.ends)
}

func (ss *sessions) end(id string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.all, digest(id))
}

func random() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // it never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// placeKey is where a request's context keeps the place that it came below.
type placeKey struct{}

// placeOf is the place that a request came below: "" or "/~…".
func placeOf(r *http.Request) string {
	place, _ := r.Context().Value(placeKey{}).(string)
	return place
}

// below takes the place off a request.
func (h *handler) below(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		place := ""
		if rest := strings.TrimPrefix(r.URL.Path, h.base); strings.HasPrefix(rest, "/~") {
			name, _, whole := strings.Cut(rest[1:], "/")
			if place = "/" + name; !whole {
				http.Redirect(w, r, h.base+place+"/", http.StatusSeeOther)
				return
			}
			r = r.WithContext(context.WithValue(r.Context(), placeKey{}, place))
		}
		http.StripPrefix(h.base+place, next).ServeHTTP(w, r)
	})
}

// home is what the links of a page begin with.
func (h *handler) home(r *http.Request) string { return h.base + placeOf(r) }

// secure reports whether a browser came by TLS, as far as it or a proxy says: a cookie is then for TLS only.
func secure(r *http.Request) bool {
	proto, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	forwarded, _, _ := strings.Cut(strings.ToLower(r.Header.Get("Forwarded")), ",")
	return r.TLS != nil || strings.EqualFold(strings.TrimSpace(proto), "https") ||
		strings.Contains(";"+strings.ReplaceAll(strings.ReplaceAll(forwarded, " ", ""), `"`, "")+";", ";proto=https;")
}

// cookie is one of the console's. With TLS no other host and no page without TLS can have set it.
func (h *handler) cookie(r *http.Request, name, place, value string, age time.Duration) *http.Cookie {
	c := &http.Cookie{Name: name, Value: value, Path: h.base + place + "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(age.Seconds())}
	if secure(r) {
		c.Name, c.Path, c.Secure = "__Host-"+name+strings.ReplaceAll(h.base, "/", "_"), "/", true
	}
	return c
}

const sessionCookie = "amends_session"

// sessionOf is the id that a browser keeps.
func (h *handler) sessionOf(r *http.Request) string {
	c, err := r.Cookie(h.cookie(r, sessionCookie, "", "", 0).Name)
	if err != nil {
		return ""
	}
	return c.Value
}

// signedIn is who signed in with the browser that asks.
func (h *handler) signedIn(r *http.Request) Person {
	s, ok := h.sessions.of(h.sessionOf(r), placeOf(r), h.now())
	if !ok {
		return Person{}
	}
	return h.told(h.opts.Tokens.by(s.token, h.now()))
}

// saidCookie carries a notice over to the next page, with a code that only this process can make.
const saidCookie = "amends_said"

func (h *handler) code(value string) string {
	mac := hmac.New(sha256.New, h.key)
	mac.Write([]byte(value))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (h *handler) setFlash(w http.ResponseWriter, r *http.Request, n notice) {
	if len(n.Text) > 1500 {
		n.Text = strings.ToValidUTF8(n.Text[:1500], "") + " …"
	}
	raw, _ := json.Marshal(n) // it always can be
	value := base64.RawURLEncoding.EncodeToString(raw)
	http.SetCookie(w, h.cookie(r, saidCookie, placeOf(r), value+"."+h.code(value), time.Minute))
}

func (h *handler) flash(w http.ResponseWriter, r *http.Request) *notice {
	gone := h.cookie(r, saidCookie, placeOf(r), "", -time.Second)
	c, err := r.Cookie(gone.Name)
	if err != nil {
		return nil
	}
	http.SetCookie(w, gone)
	value, code, _ := strings.Cut(c.Value, ".")
	var n notice
	raw, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || !hmac.Equal([]byte(code), []byte(h.code(value))) || json.Unmarshal(raw, &n) != nil || n.Text == "" {
		return nil
	}
	return &n
}
