package sagahttp

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/amends-dev/amends/internal/reading"
	"github.com/amends-dev/amends/saga"
)

// check asks Options.CheckResponse about an answer that was read whole. It is not asked about the
// answers of who gave up waiting: what these say is not the destination's word.
func (c *Client) check(resp *Response) error {
	if c.opts.CheckResponse == nil || slices.Contains(gaveUp, resp.Status) {
		return nil
	}
	return c.opts.CheckResponse(resp)
}

// believe takes what CheckResponse found into the error, and returns the class that counts. A
// request that writes was sent, so "not sent" is believed only where the destination says so
// itself. An error whose class does not count is left out of the chain, where its mark would be
// found.
func (c *Client) believe(this call, answer *StatusError, found error) saga.Class {
	said, _ := saga.Classify(found)
	class := said
	if said == saga.Unsent && !this.reads() && !c.saysNotExecuted(answer) {
		answer.doubted, class = true, saga.Unknown
	}
	answer.Said = oneLine(this.secrets().without(found.Error()))
	if said == saga.Unknown || this.class(class) != saga.Unknown {
		answer.found = found
	}
	return class
}

// saysNotExecuted reports whether an answer holds the destination's promise that it did nothing:
// its status, or one of the codes in its JSON.
func (c *Client) saysNotExecuted(answer *StatusError) bool {
	if c.classify(answer.Status, false) == saga.Unsent {
		return true
	}
	body, err := reading.Text(answer.Header.Get("Content-Type"), answer.Body)
	if err != nil {
		return false
	}
	words := json.NewDecoder(bytes.NewReader(body))
	words.UseNumber()
	for {
		word, err := words.Token()
		if err != nil {
			return false // its end, or it is not JSON
		}
		var text string
		switch word := word.(type) {
		case string:
			text = word
		case json.Number:
			text = word.String()
			if digits, ok := reading.Whole(text); ok && slices.Contains(c.opts.NotExecutedCodes, digits) {
				return true // 4001.0 is the code 4001
			}
		}
		if text != "" && slices.Contains(c.opts.NotExecutedCodes, text) {
			return true
		}
	}
}
