package naive

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// refusal is an answer that trying again will not change.
type refusal struct {
	status int
	body   string
}

// Error says what was answered.
func (r *refusal) Error() string { return fmt.Sprintf("refused with %d: %s", r.status, r.body) }

// call sends in as JSON, tries again when that fails, and decodes the answer
// into out. Either may be nil.
func (j *job) call(ctx context.Context, method, url string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	return j.retry(ctx, func(ctx context.Context) error {
		return j.try(ctx, method, url, body, out)
	})
}

func (j *job) try(ctx context.Context, method, url string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := j.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests, code >= 500:
		return fmt.Errorf("%s %s: %s", method, url, resp.Status)
	case code >= 400:
		return &refusal{status: code, body: string(bytes.TrimSpace(answer))}
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}
