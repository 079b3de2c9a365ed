-- Revisions and forgotten commits: new kinds of records and signals, signals to works that have ended, and on which
-- database a session was opened. SQLite cannot change a constraint, so the tables are written anew.

-- +goose Up
ALTER TABLE amends_sessions ADD COLUMN database TEXT; -- the identity of the database it was opened on

CREATE TABLE amends_heads_next (
    number   INTEGER NOT NULL PRIMARY KEY,
    due      INTEGER,              -- nobody holds the work: when it wants attention
    session  INTEGER,              -- who holds it
    created  INTEGER NOT NULL,
    updated  INTEGER NOT NULL,
    finished INTEGER,
    posted   INTEGER NOT NULL DEFAULT 0,
    consumed INTEGER NOT NULL DEFAULT 0,
    base     INTEGER NOT NULL DEFAULT 1, -- seq of the latest record with a snapshot
    version  INTEGER NOT NULL,
    saga     TEXT    NOT NULL,
    work     TEXT    NOT NULL,
    revision TEXT,
    status   TEXT    NOT NULL,
    reason   TEXT,

    CONSTRAINT amends_heads_names CHECK (saga <> '' AND work <> '' AND version > 0),
    CONSTRAINT amends_heads_status CHECK (CASE status
        WHEN 'running' THEN 1 WHEN 'completed' THEN 1 WHEN 'retrying' THEN 1 WHEN 'waiting' THEN 1
        WHEN 'compensating' THEN 1 WHEN 'review' THEN 1 WHEN 'paused' THEN 1 WHEN 'compensated' THEN 1
        WHEN 'abandoned' THEN 1 ELSE 0 END),
    CONSTRAINT amends_heads_holder CHECK (session IS NULL OR (session <> 0 AND due IS NULL)),
    CONSTRAINT amends_heads_live CHECK (session IS NOT NULL OR due IS NOT NULL OR finished IS NOT NULL
        OR status = 'review' OR status = 'paused'),
    CONSTRAINT amends_heads_review CHECK ((status = 'review') = (reason IS NOT NULL)),
    CONSTRAINT amends_heads_finished CHECK (
        (status = 'completed' OR status = 'compensated' OR status = 'abandoned') = (finished IS NOT NULL)),
    CONSTRAINT amends_heads_counts CHECK (consumed BETWEEN 0 AND posted AND base >= 1)
) STRICT;

INSERT INTO amends_heads_next (number, due, session, created, updated, finished, posted, consumed, base, version, saga, work, revision, status, reason)
SELECT number, due, session, created, updated, finished, posted, consumed, base, version, saga, work, revision, status, reason
FROM amends_heads;

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

CREATE TABLE amends_signals_next (
    id      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- never given twice: records name it for ever
    head    INTEGER NOT NULL REFERENCES amends_heads_next (number),
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('cancel', 'resolve', 'conflict', 'late-answer', 'resume',
        'revise', 'keep')),
    key     TEXT    NOT NULL,
    actor   TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    verdict TEXT, -- JSON: what it says
    UNIQUE (head, key)
) STRICT;

INSERT INTO amends_signals_next (id, head, at, kind, key, actor, reason, verdict)
SELECT id, head, at, kind, key, actor, reason, verdict
FROM amends_signals;

DROP TABLE amends_signals;
DROP TABLE amends_records;
DROP TABLE amends_heads;
ALTER TABLE amends_heads_next RENAME TO amends_heads;
ALTER TABLE amends_records_next RENAME TO amends_records;
ALTER TABLE amends_signals_next RENAME TO amends_signals;

CREATE UNIQUE INDEX amends_heads_work ON amends_heads (work, saga);
CREATE INDEX amends_heads_schedule ON amends_heads (session, due) WHERE session IS NOT NULL OR due IS NOT NULL;
CREATE INDEX amends_heads_signalled ON amends_heads (session) WHERE posted > consumed;
CREATE INDEX amends_heads_parked ON amends_heads (number) WHERE status IN ('review', 'paused');
CREATE INDEX amends_records_external_id ON amends_records (external_id) WHERE external_id IS NOT NULL;

-- A signal to a work that has ended is read, too.
UPDATE amends_heads SET due = updated WHERE finished IS NOT NULL AND posted > consumed;

-- +goose Down
-- What only this version knows cannot be said in the older one: take a copy instead.
DELETE FROM amends_signals WHERE kind IN ('revise', 'keep');
UPDATE amends_heads SET due = NULL, session = NULL WHERE finished IS NOT NULL;
CREATE TABLE amends_heads_next (
    number   INTEGER NOT NULL PRIMARY KEY,
    due      INTEGER,              -- nobody holds the work: when it wants attention
    session  INTEGER,              -- who holds it
    created  INTEGER NOT NULL,
    updated  INTEGER NOT NULL,
    finished INTEGER,
    posted   INTEGER NOT NULL DEFAULT 0,
    consumed INTEGER NOT NULL DEFAULT 0,
    base     INTEGER NOT NULL DEFAULT 1, -- seq of the latest record with a snapshot
    version  INTEGER NOT NULL,
    saga     TEXT    NOT NULL,
    work     TEXT    NOT NULL,
    revision TEXT,
    status   TEXT    NOT NULL,
    reason   TEXT,

    CONSTRAINT amends_heads_names CHECK (saga <> '' AND work <> '' AND version > 0),
    CONSTRAINT amends_heads_status CHECK (CASE status
        WHEN 'running' THEN 1 WHEN 'completed' THEN 1 WHEN 'retrying' THEN 1 WHEN 'waiting' THEN 1
        WHEN 'compensating' THEN 1 WHEN 'review' THEN 1 WHEN 'paused' THEN 1 WHEN 'compensated' THEN 1
        WHEN 'abandoned' THEN 1 ELSE 0 END),
    CONSTRAINT amends_heads_holder CHECK (session IS NULL OR (session <> 0 AND due IS NULL)),
    CONSTRAINT amends_heads_live CHECK (session IS NOT NULL OR due IS NOT NULL OR finished IS NOT NULL
        OR status = 'review' OR status = 'paused'),
    CONSTRAINT amends_heads_review CHECK ((status = 'review') = (reason IS NOT NULL)),
    CONSTRAINT amends_heads_finished CHECK (
        CASE WHEN status = 'completed' OR status = 'compensated' OR status = 'abandoned'
             THEN finished IS NOT NULL AND session IS NULL AND due IS NULL
             ELSE finished IS NULL END),
    CONSTRAINT amends_heads_counts CHECK (consumed BETWEEN 0 AND posted AND base >= 1)
) STRICT;

INSERT INTO amends_heads_next (number, due, session, created, updated, finished, posted, consumed, base, version, saga, work, revision, status, reason)
SELECT number, due, session, created, updated, finished, posted, consumed, base, version, saga, work, revision, status, reason
FROM amends_heads;

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
        WHEN 'parked' THEN 1 WHEN 'resumed' THEN 1 ELSE 0 END),
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

CREATE TABLE amends_signals_next (
    id      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- never given twice: records name it for ever
    head    INTEGER NOT NULL REFERENCES amends_heads_next (number),
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('cancel', 'resolve', 'conflict', 'late-answer', 'resume')),
    key     TEXT    NOT NULL,
    actor   TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    verdict TEXT, -- JSON
    UNIQUE (head, key)
) STRICT;

INSERT INTO amends_signals_next (id, head, at, kind, key, actor, reason, verdict)
SELECT id, head, at, kind, key, actor, reason, verdict
FROM amends_signals;

DROP TABLE amends_signals;
DROP TABLE amends_records;
DROP TABLE amends_heads;
ALTER TABLE amends_heads_next RENAME TO amends_heads;
ALTER TABLE amends_records_next RENAME TO amends_records;
ALTER TABLE amends_signals_next RENAME TO amends_signals;

CREATE UNIQUE INDEX amends_heads_work ON amends_heads (work, saga);
CREATE INDEX amends_heads_schedule ON amends_heads (session, due) WHERE session IS NOT NULL OR due IS NOT NULL;
CREATE INDEX amends_heads_signalled ON amends_heads (session) WHERE posted > consumed;
CREATE INDEX amends_heads_parked ON amends_heads (number) WHERE status IN ('review', 'paused');
CREATE INDEX amends_records_external_id ON amends_records (external_id) WHERE external_id IS NOT NULL;
ALTER TABLE amends_sessions DROP COLUMN database;
