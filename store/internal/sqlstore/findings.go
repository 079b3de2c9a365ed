package sqlstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/store/internal/rows"
)

// keyless is a finding as tables have it, without its key.
type keyless plan.Finding

// Scan implements [sql.Scanner].
func (k *keyless) Scan(v any) error {
	var f plan.Finding
	if err := (jsonText[plan.Finding]{&f}).Scan(v); err != nil {
		return fmt.Errorf("the finding about %s: %w", k.Key, err)
	}
	f.Key = k.Key
	*k = keyless(f)
	return nil
}

// encodeFindings writes findings as a JSON list of [key, class, acts, finding, hold]; of a key that comes
// twice the last one, as a statement may change a row once only. Those in sync are left out; their
// keys are the second list, of [key].
func encodeFindings(fs []plan.Finding) (list, inSync string, err error) {
	last := make(map[string]*plan.Finding, len(fs))
	for i := range fs {
		last[rows.Name(fs[i].Key)] = &fs[i]
	}
	elements, gone := make([][5]any, 0, len(last)), [][1]string{}
	for _, key := range slices.Sorted(maps.Keys(last)) { // two writers that meet wait in one order
		f := *last[key]
		if f.Class == plan.InSync {
			gone = append(gone, [1]string{key})
			continue
		}
		f.Key = ""
		stored, err := json.Marshal(&f)
		if err != nil {
			return "", "", fmt.Errorf("write the finding about %s: %w", key, err)
		}
		acts := 0
		if f.Action.Acts() {
			acts = 1
		}
		hold := map[plan.Hold]string{plan.Holds: "holds", plan.Unknown: "as before"}[f.Hold()]
		elements = append(elements, [5]any{key, rows.Name(string(f.Class)), acts, string(stored), hold})
	}
	if list, err = asList(elements); err != nil {
		return "", "", err
	}
	inSync, err = asList(gone)
	return list, inSync, err
}

// outcomes writes rows as a JSON list of [job, plan, key, outcome, error].
func outcomes(ref plan.Ref, rs []plan.Row) (string, error) {
	last := make(map[string]*plan.Row, len(rs))
	for i := range rs {
		last[rows.Name(rs[i].Key)] = &rs[i]
	}
	elements := make([][5]any, 0, len(last))
	for _, key := range slices.Sorted(maps.Keys(last)) {
		elements = append(elements, [5]any{rows.Name(ref.Job), ref.Number, key, rows.Text(string(last[key].Outcome)), rows.Text(last[key].Error)})
	}
	return asList(elements)
}

func asList(elements any) (string, error) {
	list, err := json.Marshal(elements)
	return string(list), err
}
