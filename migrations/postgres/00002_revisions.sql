-- Revisions and forgotten commits: new kinds of records and signals, signals to works that have ended, and on which
-- database a session was opened.

-- +goose Up
ALTER TABLE amends_sessions ADD COLUMN database text; -- the identity of the database it was opened on

ALTER TABLE amends_heads
    DROP CONSTRAINT amends_heads_finished,
    ADD CONSTRAINT amends_heads_finished CHECK (
        (status IN ('completed', 'compensated', 'abandoned')) = (finished IS NOT NULL));

ALTER TABLE amends_records
    DROP CONSTRAINT amends_records_kind,
    ADD CONSTRAINT amends_records_kind CHECK (kind IN ('started', 'armed', 'done', 'not-sent', 'refused', 'unknown',
        'lost', 'fault', 'found', 'unfinished', 'not-found', 'unclear', 'several', 'resolved', 'cancelled',
        'noted', 'parked', 'resumed', 'heard', 'revised', 'forgotten'));

ALTER TABLE amends_signals
    DROP CONSTRAINT amends_signals_kind_check,
    ADD CONSTRAINT amends_signals_kind_check CHECK (kind IN ('cancel', 'resolve', 'conflict', 'late-answer', 'resume',
        'revise', 'keep'));

-- A signal to a work that has ended is read, too.
UPDATE amends_heads SET due = updated WHERE finished IS NOT NULL AND posted > consumed;

-- +goose Down
-- What only this version knows cannot be said in the older one: take a copy instead.
DELETE FROM amends_signals WHERE kind IN ('revise', 'keep');
UPDATE amends_heads SET due = NULL, session = NULL WHERE finished IS NOT NULL;

ALTER TABLE amends_signals
    DROP CONSTRAINT amends_signals_kind_check,
    ADD CONSTRAINT amends_signals_kind_check CHECK (kind IN ('cancel', 'resolve', 'conflict', 'late-answer', 'resume'));

ALTER TABLE amends_records
    DROP CONSTRAINT amends_records_kind,
    ADD CONSTRAINT amends_records_kind CHECK (kind IN ('started', 'armed', 'done', 'not-sent', 'refused', 'unknown',
        'lost', 'fault', 'found', 'unfinished', 'not-found', 'unclear', 'several', 'resolved', 'cancelled',
        'noted', 'parked', 'resumed'));

ALTER TABLE amends_heads
    DROP CONSTRAINT amends_heads_finished,
    ADD CONSTRAINT amends_heads_finished CHECK (
        CASE WHEN status IN ('completed', 'compensated', 'abandoned')
             THEN finished IS NOT NULL AND session IS NULL AND due IS NULL
             ELSE finished IS NULL END);

ALTER TABLE amends_sessions DROP COLUMN database;
