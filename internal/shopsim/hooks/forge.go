package hooks

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/shop"
)

// tries is how often a forger tries to be heard.
const tries = 10

// forge sends the forged webhook that belongs to d, until a receiver answers
// with neither 429 nor 5xx, or tries attempts are over.
func (d *delivery) forge(ctx context.Context) error {
	h, body, err := d.forgery()
	if err != nil {
		return err
	}
	if err := pause(ctx, d.hold("forgery", 0)); err != nil {
		return err
	}
	for n := range tries {
		status, err := d.post(ctx, d.receiver("forgery", n), h, body)
		switch {
		case err != nil:
			return err
		case status == 0, status >= 500, status == http.StatusTooManyRequests:
			if err := pause(ctx, d.backoff(n+1)); err != nil {
				return err
			}
			continue
		}
		d.count(func(t *Tally) {
			t.Forged++
			switch status / 100 {
			case 2:
				t.Believed++
			case 4:
				t.Refused++
			}
		})
		return nil
	}
	return nil
}

// forgery is the forged webhook's header and body.
func (d *delivery) forgery() (h http.Header, body []byte, err error) {
	h = http.Header{}
	if d.fate.Forgery == Stale {
		return h, d.hook.Body, sign(h, d.opts.Secret, d.id, time.Now().Add(-time.Hour), d.hook.Body)
	}
	if body, err = lie(d.hook.Body); err != nil {
		return nil, nil, err
	}
	if d.fate.Forgery == Altered {
		return h, body, sign(h, d.opts.Secret, d.id, time.Now(), d.hook.Body)
	}
	secret := base64.StdEncoding.EncodeToString([]byte("anything but the shop's secret"))
	return h, body, sign(h, "whsec_"+secret, d.id+"_new", time.Now(), body)
}

// lie says of an order that it was cancelled, at a version that beats any.
func lie(body []byte) ([]byte, error) {
	var e shop.Event
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, err
	}
	e.Type, e.Data.Status = shop.TopicCancelled, shop.Cancelled
	e.Data.Version += 1000
	return json.Marshal(e)
}
