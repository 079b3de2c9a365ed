-- Adopted records: what stands of a work whose ledger was lost. And an attempt that ended because its process was told
-- to stop is stored as such.

-- +goose Up
ALTER TABLE amends_records
    DROP CONSTRAINT amends_records_kind,
    ADD CONSTRAINT amends_records_kind CHECK (kind IN ('started', 'armed', 'done', 'not-sent', 'refused', 'unknown',
        'lost', 'fault', 'found', 'unfinished', 'not-found', 'unclear', 'several', 'resolved', 'cancelled',
        'noted', 'parked', 'resumed', 'heard', 'revised', 'forgotten', 'adopted')),
    DROP CONSTRAINT amends_records_class,
    ADD CONSTRAINT amends_records_class CHECK (class IN ('unknown', 'not-sent', 'refused', 'fault', 'stopped'));

-- Which works count a step as done because nobody can tell whether it happened?
CREATE INDEX amends_records_unconfirmed ON amends_records (head) WHERE kind = 'adopted' AND class = 'unknown';

-- +goose Down
-- What only this version knows cannot be said in the older one: take a copy instead.
DROP INDEX amends_records_unconfirmed;

ALTER TABLE amends_records
    DROP CONSTRAINT amends_records_class,
    ADD CONSTRAINT amends_records_class CHECK (class IN ('unknown', 'not-sent', 'refused', 'fault')),
    DROP CONSTRAINT amends_records_kind,
    ADD CONSTRAINT amends_records_kind CHECK (kind IN ('started', 'armed', 'done', 'not-sent', 'refused', 'unknown',
        'lost', 'fault', 'found', 'unfinished', 'not-found', 'unclear', 'several', 'resolved', 'cancelled',
        'noted', 'parked', 'resumed', 'heard', 'revised', 'forgotten'));
