package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// SignStandard signs an outgoing body as Standard Webhooks does, with a secret whsec_…: it sets
// webhook-id, webhook-timestamp and webhook-signature. The id stays the same when a delivery is
// repeated; the time is that of the attempt. A second call with another secret adds its signature,
// so that receivers can change theirs.
func SignStandard(h http.Header, secret, id string, at time.Time, body []byte) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) < minSecret {
		return fmt.Errorf("sign a webhook: the secret must be base64 of at least %d bytes behind whsec_", minSecret)
	}
	if id == "" || strings.Contains(id, ".") {
		return errors.New("sign a webhook: its id must not be empty or contain a dot, which separates what is signed")
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	signature := "v1," + sum64(key, []byte(id+"."+stamp+"."), body)
	if earlier := h.Get("Webhook-Signature"); earlier != "" && h.Get("Webhook-Id") == id && h.Get("Webhook-Timestamp") == stamp {
		signature = earlier + " " + signature
	}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	h.Set("Webhook-Signature", signature)
	return nil
}

// SignWooCommerce signs an outgoing body as WooCommerce does: it sets X-WC-Webhook-Signature.
// Topic, ids and the rest of the header are not part of what is signed and are the caller's to set.
func SignWooCommerce(h http.Header, secret string, body []byte) {
	h.Set(wooSignature, sum64([]byte(secret), body))
}

func sum64(key []byte, pieces ...[]byte) string {
	mac := hmac.New(sha256.New, key)
	for _, p := range pieces {
		mac.Write(p)
	}
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
