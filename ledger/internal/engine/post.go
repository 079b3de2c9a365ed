package engine

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// Post inserts a signal and makes the work due. A key the work has already received changes nothing.
func (s *Store) Post(ctx context.Context, id saga.ID, sig saga.Signal) error {
	verdict, err := encodeVerdict(&sig)
	if err != nil {
		return fmt.Errorf("post %s to %s: %w", sig.Kind, id, err)
	}
	err = s.db.Write(ctx, func(q Queries) error {
		head, err := find(ctx, q, id)
		if err != nil {
			return err
		}
		res, err := q.ExecContext(ctx, s.text.postSignal,
			s.db.Clock(), head, string(sig.Kind), sig.Key, sig.Actor, sig.Reason, verdict)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); n == 0 || err != nil {
			return err
		}
		_, err = q.ExecContext(ctx, s.text.countSignal, s.db.Clock(), head)
		return err
	})
	return s.failed(ctx, err, "post %s to %s", sig.Kind, id)
}

// utterance is what a signal says beside its kind, as it is stored.
type utterance struct {
	saga.Verdict
	saga.News
}

// encodeVerdict returns what the signal says as JSON, nil when there is nothing beside its kind.
func encodeVerdict(sig *saga.Signal) (any, error) {
	v := &sig.Verdict
	said := utterance{sig.Verdict, sig.News}
	if err := errors.Join(validText("key", sig.Key), validText("actor", sig.Actor), validText("reason", sig.Reason),
		validText("step", v.Step), validText("direction", string(v.Direction)), validText("external id", v.ExternalID),
		validText("revision", sig.Revision)); err != nil {
		return nil, err
	}
	b, err := json.Marshal(said)
	if err != nil {
		return nil, fmt.Errorf("encode what it says: %w", err)
	}
	if string(b) == "{}" {
		return nil, nil //nolint:nilnil // NULL in the database: its kind says all
	}
	return string(b), nil
}

// find returns the number of a work.
func find(ctx context.Context, q Queries, id saga.ID) (int64, error) {
	if validText("saga", id.Saga) != nil || validText("work", id.Work) != nil {
		return 0, ledger.ErrNotFound
	}
	var head int64
	err := q.QueryRowxContext(ctx, findHead, id.Saga, id.Work).Scan(&head)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ledger.ErrNotFound
	}
	return head, err
}

// Describe stores a definition's structure or compares it with the stored one.
func (s *Store) Describe(ctx context.Context, spec *saga.Spec) error {
	b, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("describe %s version %d: encode its structure: %w", spec.Saga, spec.Version, err)
	}
	err = s.db.Write(ctx, func(q Queries) error {
		_, err := q.ExecContext(ctx, s.text.addDefinition, s.db.Clock(), spec.Saga, spec.Version, spec.Structure(), string(b))
		if err != nil {
			return err
		}
		var stored string
		if err := q.QueryRowxContext(ctx, structure, spec.Saga, spec.Version).Scan(&stored); err != nil {
			return err
		}
		if stored != spec.Structure() {
			return fmt.Errorf("%w; raise the version", ledger.ErrDefinitionChanged)
		}
		return nil
	})
	return s.failed(ctx, err, "describe %s version %d", spec.Saga, spec.Version)
}

// Count adds blocked duplicates to their counters, in the order of their keys so that two processes which
// count the same keys do not wait for each other in a circle.
func (s *Store) Count(ctx context.Context, ds []ledger.Duplicate) error {
	if len(ds) == 0 {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(ds), func(a, b ledger.Duplicate) int {
		return cmp.Or(cmp.Compare(a.ID.Saga, b.ID.Saga), cmp.Compare(a.ID.Work, b.ID.Work), cmp.Compare(a.Source, b.Source))
	})
	err := s.db.Write(ctx, func(q Queries) error {
		for _, d := range sorted {
			_, err := q.ExecContext(ctx, s.text.countDuplicate, s.db.Clock(), d.ID.Saga, d.ID.Work, printable(d.Source), d.Count)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return s.failed(ctx, err, "count %d duplicates", len(ds))
}
