package webhook

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // as an HMAC it still holds, and senders use it
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/faults"
	"github.com/amends-dev/amends/internal/intake"
)

// Auth says how a sender that this package does not know proves who it is. The zero value of a
// field means its default.
//
//	Typeform              {Method: "hmac", Header: "Typeform-Signature", Prefix: "sha256=", Encoding: "base64"}
//	t=1492774577,v1=5257  {Method: "hmac", Header: "X-Signature", TimePart: "t", Prefix: "v1="}
//	Slack                 {Method: "hmac", Header: "X-Slack-Signature", Prefix: "v0=",
//	                       TimeHeader: "X-Slack-Request-Timestamp", Signed: "v0:{time}:{body}"}
//	n8n, Make, Zapier     {Method: "bearer"}, {Method: "bearer", Header: "X-Api-Key"} or {Method: "basic"}
//
// A credential (bearer, basic) signs nothing: who sees one delivery can make any other. Where the
// sender can sign, let it; else a Mapping that is Partial has the source asked about each delivery.
type Auth struct {
	// Method is hmac: Header is a signature made with the secret; bearer: it is the secret; or
	// basic: it is the secret, user:password, as HTTP's Basic scheme writes it.
	Method string
	// Header is the name of the header. Default: Authorization, for bearer and basic.
	Header string
	// Prefix stands in front of the value: sha256=. Default: in Authorization, Bearer and Basic
	// with a blank; else none.
	Prefix string

	// What follows is for hmac.

	// Hash is sha1, sha256 or sha512. Default: sha256.
	Hash string
	// Encoding is hex or base64. Default: hex.
	Encoding string
	// TimeHeader is the header that has the signed time: seconds or milliseconds since 1970, RFC 3339
	// (2026-11-25T10:00:00Z) or a date as HTTP writes it. With it, or TimePart, a captured delivery goes stale after Sender.Tolerance. Default: no time
	// is signed.
	TimeHeader string
	// TimePart is the name of the part of Header that has it: t, where the header is
	// t=1492774577,v1=5257…. Parts have commas or semicolons between them; those that begin with
	// Prefix, here v1=, are signatures.
	TimePart string
	// Signed is what the signature is over. Default: {body}, or {time}.{body} where a time is
	// signed.
	Signed string
}

// Custom returns the provider for a sender that this package does not know: a tool, or a system of
// one's own. A delivery is a JSON object, which m reads: one event of one object. What is wrong
// with them is said where the provider is used: by inbox.New.
//
// An event is known by its id where Mapping.EventID names one, else by its content. Content without
// a time or a version comes again word for word when the same has happened again, so it is the same
// event only within a minute.
func Custom(a Auth, m Mapping) Provider {
	a, m = a.withDefaults(), m.withDefaults()
	if err := errors.Join(a.validate(), m.validate()); err != nil {
		return Provider{err: err}
	}
	return Provider{
		name: "a sender with " + a.Header, signsTime: a.signsTime(),
		key: a.key, claim: a.claim,
		parse: func(d message) ([]intake.Event, error) {
			e, err := m.event(d.Body)
			if err != nil {
				return nil, err
			}
			return []intake.Event{e}, nil
		},
	}
}

const (
	byHMAC   = "hmac"
	byBearer = "bearer"
	byBasic  = "basic"

	bodyHere = "{body}"
	timeHere = "{time}"
)

var hashes = map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func (a Auth) signsTime() bool { return a.TimeHeader != "" || a.TimePart != "" }

func (a Auth) withDefaults() Auth {
	switch a.Method {
	case byHMAC:
		a.Hash = cmp.Or(a.Hash, "sha256")
		a.Encoding = cmp.Or(a.Encoding, "hex")
		if a.signsTime() {
			a.Signed = cmp.Or(a.Signed, timeHere+"."+bodyHere)
		}
		a.Signed = cmp.Or(a.Signed, bodyHere)
	case byBearer, byBasic:
		a.Header = cmp.Or(a.Header, "Authorization")
		if http.CanonicalHeaderKey(a.Header) == "Authorization" {
			a.Prefix = cmp.Or(a.Prefix, map[string]string{byBearer: "Bearer ", byBasic: "Basic "}[a.Method])
		}
	}
	return a
}

// validate reports everything that is wrong, in one error.
func (a Auth) validate() error {
	var f faults.List
	f.Whenf(!headerName.MatchString(a.Header), "Header is %q, which is not the name of a header", a.Header)
	switch a.Method {
	case byHMAC:
		a.validateHMAC(&f)
	case byBearer, byBasic:
		for field, value := range map[string]string{
			"Hash": a.Hash, "Encoding": a.Encoding, "TimeHeader": a.TimeHeader, "TimePart": a.TimePart, "Signed": a.Signed,
		} {
			f.Whenf(value != "", "%s is set, but %s signs nothing", field, a.Method)
		}
	default:
		f.Whenf(true, "Method is %q; it has to be hmac, bearer or basic", a.Method)
	}
	if err := f.Err(); err != nil {
		return fmt.Errorf("auth:\n%w", err)
	}
	return nil
}

func (a Auth) validateHMAC(f *faults.List) {
	f.Whenf(hashes[a.Hash] == nil, "Hash is %q; it has to be sha1, sha256 or sha512", a.Hash)
	f.Whenf(a.Encoding != "hex" && a.Encoding != "base64", "Encoding is %q; it has to be hex or base64", a.Encoding)
	f.Whenf(a.TimeHeader != "" && a.TimePart != "", "TimeHeader and TimePart are both set; the time stands in one place")
	f.Whenf(a.TimeHeader != "" && !headerName.MatchString(a.TimeHeader), "TimeHeader is %q, which is not the name of a header", a.TimeHeader)
	f.Whenf(a.TimeHeader != "" && strings.EqualFold(a.TimeHeader, a.Header), "TimeHeader is Header; a time inside it is named by TimePart")
	if a.TimePart != "" {
		f.Whenf(strings.ContainsAny(a.TimePart, "=,; "), "TimePart is %q; it is a name, without the = behind it", a.TimePart)
		f.Whenf(strings.Trim(a.Prefix, "=,; ") == "" || strings.ContainsAny(a.Prefix, ",; "),
			"Prefix is %q; beside TimePart it is what a signature begins with, as v1=", a.Prefix)
		f.Whenf(strings.HasPrefix(a.TimePart+"=", a.Prefix) && a.Prefix != "", "Prefix and TimePart name the same part")
	}
	f.Whenf(strings.Count(a.Signed, bodyHere) != 1, "Signed is %q; it needs {body} once, or the body could be any", a.Signed)
	signs := strings.Contains(a.Signed, timeHere)
	f.Whenf(a.signsTime() && !signs, "Signed is %q; it needs {time}, or the time could be any", a.Signed)
	f.Whenf(!a.signsTime() && signs, "Signed has {time}, but neither TimeHeader nor TimePart says where the time stands")
}

// key reads a secret as the method needs it.
func (a Auth) key(secret string) (proof, error) {
	switch a.Method {
	case byHMAC:
		return hmacKeyOf(hashes[a.Hash], "", []byte(secret))
	case byBasic:
		user, password, ok := strings.Cut(secret, ":")
		if !ok || user == "" {
			return nil, errors.New("it has to be user:password")
		}
		if _, err := credentialKey(password); err != nil {
			return nil, fmt.Errorf("its password: %w", err)
		}
	}
	return credentialKey(secret)
}

func (a Auth) claim(h http.Header, body []byte) (claim, error) {
	text, err := one(h, a.Header)
	if err != nil {
		return claim{}, err
	}
	if a.Method != byHMAC {
		return a.credential(text)
	}
	signatures, stamp := []string{text}, ""
	switch {
	case a.TimePart != "":
		if signatures, stamp, err = a.parts(text); err != nil {
			return claim{}, err
		}
	case a.TimeHeader != "":
		if stamp, err = one(h, a.TimeHeader); err != nil {
			return claim{}, errBadSignature
		}
	}
	c := claim{Signed: a.signed(stamp, body)}
	if a.signsTime() {
		if c.At, err = stampTime(stamp); err != nil {
			return claim{}, err
		}
	}
	for _, s := range signatures {
		if sum := a.decode(s); len(sum) > 0 {
			c.Signatures = append(c.Signatures, signature{Bytes: sum})
		}
	}
	if len(c.Signatures) == 0 {
		return claim{}, errBadSignature
	}
	return c, nil
}

// parts reads a header of parts: the signatures, and the time, which has to be there once.
func (a Auth) parts(text string) (signatures []string, stamp string, err error) {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' }) {
		part = strings.TrimSpace(part)
		value, isTime := strings.CutPrefix(part, a.TimePart+"=")
		switch {
		case isTime && stamp != "":
			return nil, "", errBadSignature
		case isTime:
			stamp = value
		case strings.HasPrefix(part, a.Prefix):
			signatures = append(signatures, part)
		}
	}
	if len(signatures) > maxSignatures {
		return nil, "", errBadSignature
	}
	return signatures, stamp, nil
}

// signed is what the signature is over, in pieces.
func (a Auth) signed(stamp string, body []byte) [][]byte {
	before, after, _ := strings.Cut(a.Signed, bodyHere)
	return [][]byte{
		[]byte(strings.ReplaceAll(before, timeHere, stamp)), body, []byte(strings.ReplaceAll(after, timeHere, stamp)),
	}
}

// decode returns the bytes of a signature, none where it cannot be read.
func (a Auth) decode(text string) []byte {
	text, ok := strings.CutPrefix(text, a.Prefix)
	if !ok {
		return nil
	}
	decode := hex.DecodeString
	if a.Encoding == "base64" {
		decode = base64.StdEncoding.Strict().DecodeString
	}
	sum, err := decode(text)
	if err != nil {
		return nil
	}
	return sum
}

// credential reads the secret that a header shows. HTTP does not care how Bearer and Basic are
// written.
func (a Auth) credential(text string) (claim, error) {
	if len(text) < len(a.Prefix) || !strings.EqualFold(text[:len(a.Prefix)], a.Prefix) {
		return claim{}, errBadSignature
	}
	shown := []byte(text[len(a.Prefix):])
	if a.Method == byBasic {
		var err error
		if shown, err = base64.StdEncoding.Strict().DecodeString(string(shown)); err != nil {
			return claim{}, errBadSignature
		}
	}
	return claim{Signatures: []signature{{Bytes: slices.Clone(shown)}}}, nil
}

// stampTime reads a signed time: seconds since 1970, with a fraction or none; milliseconds, since so
// many seconds are beyond the year 5000; RFC 3339; or a date as HTTP writes it.
func stampTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, http.TimeFormat} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	if whole, fraction, found := strings.Cut(text, "."); found && fraction != "" && strings.Trim(fraction, "0123456789") == "" {
		text = whole
	}
	at, err := signedTime(text)
	if err == nil && at.Unix() >= 1e11 {
		at = time.UnixMilli(at.Unix())
	}
	return at, err
}
