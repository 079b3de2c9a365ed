package saga

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// duration is a length of time in a stored document: "1m30s", as people and Go write it. A number of nanoseconds would say
// little, and a reader in JavaScript loses the end of one beyond 104 days (K18).
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = duration(parsed)
	return err
}

// storedStep is a [StepSpec] as the ledger keeps it. The fields here stand before those of the same name in plain.
type storedStep struct {
	plainStep
	TTL     duration `json:"ttl,omitempty"`
	Timeout duration `json:"timeout"`
	Settle  duration `json:"settle"`
}

type plainStep StepSpec

// MarshalJSON and UnmarshalJSON put the step into the stored definition.
func (s StepSpec) MarshalJSON() ([]byte, error) {
	return json.Marshal(storedStep{plainStep(s), duration(s.TTL), duration(s.Timeout), duration(s.Settle)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *StepSpec) UnmarshalJSON(b []byte) error {
	var stored storedStep
	if err := json.Unmarshal(b, &stored); err != nil {
		return err
	}
	*s = StepSpec(stored.plainStep)
	s.TTL, s.Timeout, s.Settle = time.Duration(stored.TTL), time.Duration(stored.Timeout), time.Duration(stored.Settle)
	return nil
}

// storedRetry is a [Retry] as the ledger keeps it.
type storedRetry struct {
	plainRetry
	Within  duration `json:"maxElapsed,omitempty"`
	Initial duration `json:"initialInterval,omitempty"`
	Max     duration `json:"maxInterval,omitempty"`
}

type plainRetry Retry

// MarshalJSON and UnmarshalJSON put the policy into the stored definition.
func (r Retry) MarshalJSON() ([]byte, error) {
	return json.Marshal(storedRetry{plainRetry(r), duration(r.Within), duration(r.Initial), duration(r.Max)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Retry) UnmarshalJSON(b []byte) error {
	var stored storedRetry
	if err := json.Unmarshal(b, &stored); err != nil {
		return err
	}
	*r = Retry(stored.plainRetry)
	r.Within, r.Initial, r.Max = time.Duration(stored.Within), time.Duration(stored.Initial), time.Duration(stored.Max)
	return nil
}

// signalIDs are ids of signals in a stored document: texts, as every id is in JSON (K18).
type signalIDs []int64

func (ids signalIDs) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, strconv.FormatInt(id, 10))
	}
	return append(b, ']'), nil
}

func (ids *signalIDs) UnmarshalJSON(b []byte) error {
	var texts []string
	if err := json.Unmarshal(b, &texts); err != nil {
		return err
	}
	*ids = make(signalIDs, len(texts))
	for i, text := range texts {
		var err error
		if (*ids)[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return fmt.Errorf("the id of a signal: %w", err)
		}
	}
	return nil
}
