-- Adopted records: what stands of a work whose ledger was lost. And an attempt that ended because its process was told
-- to stop is stored as such. SQLite cannot change a constraint, so the table is written anew.

-- +goose Up
CREATE TABLE amends_records_next (
    head          INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    session       INTEGER NOT NULL,
    nonce         INTEGER,
    seq           INTEGER NOT NULL CHECK (seq >= 1),
    version       INTEGER,
    attempt       INTEGER,
    arm_attempt   INTEGER,
    arm_reissue   INTEGER,
    arm_budget_ms INTEGER,
    wait_ms       INTEGER,
    held          INTEGER, -- what the record did to its head: 1 held, 0 released, null left alone
    body_dropped  INTEGER,
    hash          BLOB    NOT NULL CHECK (length(hash) = 16),
    kind          TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    reason        TEXT,
    revision      TEXT,
    step          TEXT,
    direction     TEXT,
    external_id   TEXT,
    class         TEXT,
    error         TEXT,
    signals       TEXT, -- the numbers of the signals it consumed, a JSON array
    arm_step      TEXT,
    arm_direction TEXT,
    arm_key       TEXT,
    body          TEXT,
    snapshot      TEXT,

    PRIMARY KEY (head, seq),
    CONSTRAINT amends_records_kind CHECK (CASE kind
        WHEN 'done' THEN 1 WHEN 'started' THEN 1 WHEN 'armed' THEN 1 WHEN 'not-sent' THEN 1
        WHEN 'refused' THEN 1 WHEN 'unknown' THEN 1 WHEN 'lost' THEN 1 WHEN 'fault' THEN 1
        WHEN 'found' THEN 1 WHEN 'unfinished' THEN 1 WHEN 'not-found' THEN 1 WHEN 'unclear' THEN 1
        WHEN 'several' THEN 1 WHEN 'resolved' THEN 1 WHEN 'cancelled' THEN 1 WHEN 'noted' THEN 1
        WHEN 'parked' THEN 1 WHEN 'resumed' THEN 1 WHEN 'heard' THEN 1 WHEN 'revised' THEN 1
        WHEN 'forgotten' THEN 1 WHEN 'adopted' THEN 1 ELSE 0 END),
    CONSTRAINT amends_records_status CHECK (CASE status
        WHEN 'running' THEN 1 WHEN 'completed' THEN 1 WHEN 'retrying' THEN 1 WHEN 'waiting' THEN 1
        WHEN 'compensating' THEN 1 WHEN 'review' THEN 1 WHEN 'paused' THEN 1 WHEN 'compensated' THEN 1
        WHEN 'abandoned' THEN 1 ELSE 0 END),
    CONSTRAINT amends_records_direction CHECK (direction IS NULL OR CASE direction
        WHEN 'forward' THEN 1 WHEN 'undo' THEN 1 ELSE 0 END),
    CONSTRAINT amends_records_review CHECK ((status = 'review') = (reason IS NOT NULL)),
    CONSTRAINT amends_records_reason CHECK (reason IS NULL OR CASE reason
        WHEN 'in-doubt' THEN 1 WHEN 'undo-failed' THEN 1 WHEN 'after-pivot' THEN 1
        WHEN 'exhausted' THEN 1 WHEN 'unknown-version' THEN 1 WHEN 'poison' THEN 1
        WHEN 'conflict' THEN 1 ELSE 0 END),
    CONSTRAINT amends_records_class CHECK (class IS NULL OR CASE class
        WHEN 'unknown' THEN 1 WHEN 'not-sent' THEN 1 WHEN 'refused' THEN 1 WHEN 'fault' THEN 1 WHEN 'stopped' THEN 1
        ELSE 0 END),
    CONSTRAINT amends_records_wait CHECK (wait_ms >= 0),
    -- A record arms something when arm_attempt is there.
    CONSTRAINT amends_records_arm CHECK (CASE WHEN arm_attempt IS NULL
        THEN arm_step IS NULL AND arm_direction IS NULL AND arm_key IS NULL AND arm_budget_ms IS NULL
        ELSE arm_budget_ms >= 0 AND (arm_direction = 'forward' OR arm_direction = 'undo') END)
) STRICT;

INSERT INTO amends_records_next (head, at, session, nonce, seq, version, attempt, arm_attempt, arm_reissue, arm_budget_ms, wait_ms, held, body_dropped, hash, kind, status, reason, revision, step, direction, external_id, class, error, signals, arm_step, arm_direction, arm_key, body, snapshot)
SELECT head, at, session, nonce, seq, version, attempt, arm_attempt, arm_reissue, arm_budget_ms, wait_ms, held, body_dropped, hash, kind, status, reason, revision, step, direction, external_id, class, error, signals, arm_step, arm_direction, arm_key, body, snapshot
FROM amends_records;

DROP TABLE amends_records;
ALTER TABLE amends_records_next RENAME TO amends_records;

CREATE INDEX amends_records_external_id ON amends_records (external_id) WHERE external_id IS NOT NULL;

-- Which works count a step as done because nobody can tell whether it happened?
CREATE INDEX amends_records_unconfirmed ON amends_records (head) WHERE kind = 'adopted' AND class = 'unknown';

-- +goose Down
-- What only this version knows cannot be said in the older one: take a copy instead.
CREATE TABLE amends_records_next (
    head          INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    session       INTEGER NOT NULL,
    nonce         INTEGER,
    seq           INTEGER NOT NULL CHECK (seq >= 1),
    version       INTEGER,
    attempt       INTEGER,
    arm_attempt   INTEGER,
    arm_reissue   INTEGER,
    arm_budget_ms INTEGER,
    wait_ms       INTEGER,
    held          INTEGER, -- what the record did to its head: 1 held, 0 released, null left alone
    body_dropped  INTEGER,
    hash          BLOB    NOT NULL CHECK (length(hash) = 16),
    kind          TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    reason        TEXT,
    revision      TEXT,
    step          TEXT,
    direction     TEXT,
    external_id   TEXT,
    class         TEXT,
    error         TEXT,
    signals       TEXT, -- the numbers of the signals it consumed, a JSON array
    arm_step      TEXT,
    arm_direction TEXT,
    arm_key       TEXT,
    body          TEXT,
    snapshot      TEXT,

    PRIMARY KEY (head, seq),
    CONSTRAINT amends_records_kind CHECK (CASE kind
        WHEN 'done' THEN 1 WHEN 'started' THEN 1 WHEN 'armed' THEN 1 WHEN 'not-sent' THEN 1
        WHEN 'refused' THEN 1 WHEN 'unknown' THEN 1 WHEN 'lost' THEN 1 WHEN 'fault' THEN 1
        WHEN 'found' THEN 1 WHEN 'unfinished' THEN 1 WHEN 'not-found' THEN 1 WHEN 'unclear' THEN 1
        WHEN 'several' THEN 1 WHEN 'resolved' THEN 1 WHEN 'cancelled' THEN 1 WHEN 'noted' THEN 1
        WHEN 'parked' THEN 1 WHEN 'resumed' THEN 1 WHEN 'heard' THEN 1 WHEN 'revised' THEN 1
        WHEN 'forgotten' THEN 1 ELSE 0 END),
    CONSTRAINT amends_records_status CHECK (CASE status
        WHEN 'running' THEN 1 WHEN 'completed' THEN 1 WHEN 'retrying' THEN 1 WHEN 'waiting' THEN 1
        WHEN 'compensating' THEN 1 WHEN 'review' THEN 1 WHEN 'paused' THEN 1 WHEN 'compensated' THEN 1
        WHEN 'abandoned' THEN 1 ELSE 0 END),
    CONSTRAINT amends_records_direction CHECK (direction IS NULL OR CASE direction
        WHEN 'forward' THEN 1 WHEN 'undo' THEN 1 ELSE 0 END),
    CONSTRAINT amends_records_review CHECK ((status = 'review') = (reason IS NOT NULL)),
    CONSTRAINT amends_records_reason CHECK (reason IS NULL OR CASE reason
        WHEN 'in-doubt' THEN 1 WHEN 'undo-failed' THEN 1 WHEN 'after-pivot' THEN 1
        WHEN 'exhausted' THEN 1 WHEN 'unknown-version' THEN 1 WHEN 'poison' THEN 1
        WHEN 'conflict' THEN 1 ELSE 0 END),
    CONSTRAINT amends_records_class CHECK (class IS NULL OR CASE class
        WHEN 'unknown' THEN 1 WHEN 'not-sent' THEN 1 WHEN 'refused' THEN 1 WHEN 'fault' THEN 1 ELSE 0 END),
    CONSTRAINT amends_records_wait CHECK (wait_ms >= 0),
    -- A record arms something when arm_attempt is there.
    CONSTRAINT amends_records_arm CHECK (CASE WHEN arm_attempt IS NULL
        THEN arm_step IS NULL AND arm_direction IS NULL AND arm_key IS NULL AND arm_budget_ms IS NULL
        ELSE arm_budget_ms >= 0 AND (arm_direction = 'forward' OR arm_direction = 'undo') END)
) STRICT;

INSERT INTO amends_records_next (head, at, session, nonce, seq, version, attempt, arm_attempt, arm_reissue, arm_budget_ms, wait_ms, held, body_dropped, hash, kind, status, reason, revision, step, direction, external_id, class, error, signals, arm_step, arm_direction, arm_key, body, snapshot)
SELECT head, at, session, nonce, seq, version, attempt, arm_attempt, arm_reissue, arm_budget_ms, wait_ms, held, body_dropped, hash, kind, status, reason, revision, step, direction, external_id, class, error, signals, arm_step, arm_direction, arm_key, body, snapshot
FROM amends_records;

DROP TABLE amends_records;
ALTER TABLE amends_records_next RENAME TO amends_records;

CREATE INDEX amends_records_external_id ON amends_records (external_id) WHERE external_id IS NOT NULL;
