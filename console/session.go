package console

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

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
	id, s = random(), session{token: digest(token), ends: now.Add(sessionFor)}
	if !tls {
		s.place = "/~" + random()
	}
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
