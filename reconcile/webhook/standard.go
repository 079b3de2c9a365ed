package webhook

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"github.com/amends-dev/amends/internal/faults"
	"github.com/amends-dev/amends/internal/intake"
)

// Standard returns the provider for senders that follow Standard Webhooks, Svix and its customers
// among them: webhook-id, webhook-timestamp and webhook-signature, or the same under svix-. The
// signature is over id, time and body; v1 is HMAC-SHA256 with a secret whsec_…, v1a is ed25519 with
// a public key whpk_….
//
// The convention leaves open what a body says, so m tells. What is wrong with m is said where the
// provider is used: by inbox.New.
func Standard(m Mapping) Provider {
	m = m.withDefaults()
	var f faults.List
	f.Whenf(m.EventID != "", "EventID is %q, but the id of an event is its header webhook-id", m.EventID)
	if err := errors.Join(m.validate(), f.Err()); err != nil {
		return Provider{err: err}
	}
	return Provider{
		name: "Standard Webhooks", signsTime: true,
		key: standardKey, claim: standardClaim,
		parse: func(d message) ([]intake.Event, error) {
			e, err := m.event(d.Body)
			if err != nil {
				return nil, err
			}
			e.ID = standardHeader(d.Header, "id")
			e.Dedupe = byID(e.ID)
			return []intake.Event{e}, nil
		},
	}
}

// standardKey reads whsec_ and whpk_. Without either it might be a public key, which is no secret.
func standardKey(secret string) (proof, error) {
	text, public := strings.CutPrefix(secret, "whpk_")
	text, private := strings.CutPrefix(text, "whsec_")
	if public == private {
		return nil, errors.New("it has to begin with whsec_, or with whpk_ where it is a public key")
	}
	bytes, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("it is not base64 behind whsec_ or whpk_")
	}
	if public {
		return ed25519Key("v1a", bytes)
	}
	return hmacKey("v1", bytes)
}

func standardClaim(h http.Header, body []byte) (claim, error) {
	list, err := one(h, standardName(h, "signature"))
	if err != nil {
		return claim{}, err
	}
	id, errID := one(h, standardName(h, "id"))
	stamp, errStamp := one(h, standardName(h, "timestamp"))
	if errID != nil || errStamp != nil {
		return claim{}, errBadSignature
	}
	c := claim{Signed: [][]byte{[]byte(id + "." + stamp + "."), body}}
	if c.At, err = signedTime(stamp); err != nil {
		return claim{}, err
	}
	items := strings.SplitN(list, " ", maxSignatures+1)
	if len(items) > maxSignatures {
		return claim{}, errBadSignature
	}
	for _, item := range items { // a sender may add schemes whose form is not known here
		scheme, text, _ := strings.Cut(item, ",")
		if sum, err := base64.StdEncoding.Strict().DecodeString(text); err == nil && len(sum) > 0 {
			c.Signatures = append(c.Signatures, signature{Scheme: scheme, Bytes: sum})
		}
	}
	if len(c.Signatures) == 0 {
		return claim{}, errBadSignature
	}
	return c, nil
}

// standardName is the name of a header, under the convention's prefix or Svix' own.
func standardName(h http.Header, name string) string {
	if h.Get("Webhook-Id") == "" && h.Get("Svix-Id") != "" {
		return "Svix-" + name
	}
	return "Webhook-" + name
}

func standardHeader(h http.Header, name string) string { return h.Get(standardName(h, name)) }
