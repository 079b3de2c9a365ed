package program

import (
	"encoding/json"
	"time"
)

// Duration is a length of time in a stored document: "1m30s", as people and Go write it. A number
// of nanoseconds would say little, and a reader in JavaScript loses the end of one beyond 104 days.
type Duration time.Duration

func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// storedStep is a [StepSpec] as the ledger keeps it. The fields here stand before those of the same
// name in plain.
type storedStep struct {
	plainStep
	Delay   Duration `json:"delay,omitempty"`
	TTL     Duration `json:"ttl,omitempty"`
	Timeout Duration `json:"timeout,omitempty"`
	Settle  Duration `json:"settle,omitempty"`
}

type plainStep StepSpec

// MarshalJSON and UnmarshalJSON put the step into the stored definition.
func (s StepSpec) MarshalJSON() ([]byte, error) {
	return json.Marshal(storedStep{plainStep(s), Duration(s.Delay), Duration(s.TTL), Duration(s.Timeout), Duration(s.Settle)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *StepSpec) UnmarshalJSON(b []byte) error {
	var stored storedStep
	if err := json.Unmarshal(b, &stored); err != nil {
		return err
	}
	*s = StepSpec(stored.plainStep)
	s.Delay, s.TTL, s.Timeout, s.Settle = time.Duration(stored.Delay), time.Duration(stored.TTL), time.Duration(stored.Timeout), time.Duration(stored.Settle)
	return nil
}

// storedSpec is a [Spec] as the ledger keeps it.
type storedSpec struct {
	plainSpec
	Deadline Duration `json:"deadline,omitempty"`
}

type plainSpec Spec

// MarshalJSON and UnmarshalJSON put the definition into the ledger.
func (s Spec) MarshalJSON() ([]byte, error) {
	return json.Marshal(storedSpec{plainSpec(s), Duration(s.Deadline)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Spec) UnmarshalJSON(b []byte) error {
	var stored storedSpec
	if err := json.Unmarshal(b, &stored); err != nil {
		return err
	}
	*s = Spec(stored.plainSpec)
	s.Deadline = time.Duration(stored.Deadline)
	return nil
}

// storedRetry is a [Retry] as the ledger keeps it.
type storedRetry struct {
	plainRetry
	Within  Duration `json:"maxElapsed,omitempty"`
	Initial Duration `json:"initialInterval,omitempty"`
	Max     Duration `json:"maxInterval,omitempty"`
}

type plainRetry Retry

// MarshalJSON and UnmarshalJSON put the policy into the stored definition.
func (r Retry) MarshalJSON() ([]byte, error) {
	return json.Marshal(storedRetry{plainRetry(r), Duration(r.Within), Duration(r.Initial), Duration(r.Max)})
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
