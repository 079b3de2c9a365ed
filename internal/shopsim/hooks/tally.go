package hooks

import "context"

// Tally counts what happened to webhooks so far.
type Tally struct {
	Made         int `json:"made"`         // webhooks in the outbox
	Acknowledged int `json:"acknowledged"` // answered with 2xx
	Lost         int `json:"lost"`         // given up, and acknowledged by no receiver
	Sent         int `json:"sent"`         // attempts that left, copies among them
	Dropped      int `json:"dropped"`      // attempts that never left
	Unheard      int `json:"unheard"`      // attempts that left and met no 2xx
	Copies       int `json:"copies"`       // attempts beyond what was needed
	Forged       int `json:"forged"`       // forged ones answered, other than with 429 or 5xx
	Refused      int `json:"refused"`      // of those: with 4xx, as they should be
	Believed     int `json:"believed"`     // of those: with 2xx
}

// Tally returns the counts so far.
func (s *Sender) Tally(ctx context.Context) (Tally, error) {
	told, err := s.outbox.Told(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tally
	t.Made, t.Acknowledged = told.Made, told.Acknowledged
	return t, err
}

// count changes what is counted.
func (s *Sender) count(change func(*Tally)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.tally)
}
