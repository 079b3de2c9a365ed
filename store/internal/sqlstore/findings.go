package sqlstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/store/internal/rows"
)

// findingRow is a finding as a table has it.
type findingRow struct {
	Key            string
	Outcome, Error Text
	At             Moment `db:"outcome_at"`
	Finding        string
}

func (r *findingRow) row() (plan.Row, error) {
	f, err := readFinding(r.Key, r.Finding)
	return plan.Row{Finding: f, Outcome: plan.Outcome(r.Outcome), Error: string(r.Error), At: r.At.Time()}, err
}

// readFinding reads a finding, which is stored without its key.
func readFinding(key, stored string) (plan.Finding, error) {
	var f plan.Finding
	if err := json.Unmarshal([]byte(stored), &f); err != nil {
		return f, fmt.Errorf("the finding about %s cannot be read: %w", key, err)
	}
	f.Key = key
	return f, nil
}

// encodeFindings writes findings as a JSON list of [key, class, acts, finding]; of a key that comes
// twice the last one, as a statement may change a row once only. Those in sync are left out; their
// keys are the second list, of [key].
func encodeFindings(fs []plan.Finding) (list, inSync string, err error) {
	last := make(map[string]*plan.Finding, len(fs))
	for i := range fs {
		last[rows.Name(fs[i].Key)] = &fs[i]
	}
	elements, gone := make([][4]any, 0, len(last)), [][1]string{}
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
		if f.Do.Acts() {
			acts = 1
		}
		elements = append(elements, [4]any{key, rows.Name(string(f.Class)), acts, string(stored)})
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
