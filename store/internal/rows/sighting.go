package rows

import (
	"encoding/hex"
	"encoding/json"

	"github.com/amends-dev/amends/internal/scan"
)

// Sighting is what a statement that takes a JSON list gets of a sighting, and its key and id as the
// database has them.
func Sighting(s *scan.Sighting) (values []any, key [2]string) {
	key = [2]string{name(s.Key), name(s.ID)}
	var fields, fingerprint any
	if len(s.Fields) > 0 {
		clean := make(map[string]string, len(s.Fields))
		for k, v := range s.Fields {
			clean[printable(k)] = printable(v)
		}
		text, _ := json.Marshal(clean) //nolint:errchkjson // strings always marshal
		fields = string(text)
	}
	if !s.Fingerprint.IsZero() {
		fingerprint = hex.EncodeToString(s.Fingerprint[:])
	}
	return []any{
		key[0], key[1], s.Generation, int64(s.Flags), Micros(s.Created), name(s.Partition), text(s.Revision), fingerprint, fields,
	}, key
}
