package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Decode reads a body that is in the ledger, or is to be, into what v points to. A number that is
// read into an untyped value is a [json.Number], with the digits that it is written with: a float64
// has 15 of them for sure, and ids are longer.
func Decode(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	err := d.Decode(v)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the JSON")
	}
	return nil
}
