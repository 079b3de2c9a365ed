-- The ledger: chains of records, one per unit of work, and the heads by which works are scheduled and listed.
-- The same tables as on Postgres. Times are microseconds since 1970, UTC: datetime(at / 1e6, 'unixepoch').
-- Constraints on the write path spell out CASE and OR: for IN, SQLite builds a table per row.

-- +goose Up

-- Which file this is. A restored copy keeps the name, a ledger begun anew has another.
CREATE TABLE amends_database (
    one      INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    identity TEXT    NOT NULL
) STRICT;

INSERT INTO amends_database (one, identity) VALUES (1, 'sqlite-' || lower(hex(randomblob(8))));

-- One row per coordinator process and the lease it holds. A dead session never revives.
CREATE TABLE amends_sessions (
    token   INTEGER NOT NULL PRIMARY KEY CHECK (token <> 0),
    label   TEXT    NOT NULL,
    opened  INTEGER NOT NULL,
    renewed INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    dead    INTEGER NOT NULL DEFAULT 0 CHECK (dead IN (0, 1))
) STRICT;

-- Few sessions live at a time, however many there were.
CREATE INDEX amends_sessions_live ON amends_sessions (token) WHERE NOT dead;

-- A projection of the chains, rewritten only when scheduling changes. It can be rebuilt from amends_records.
CREATE TABLE amends_heads (
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

-- A work is accepted once. Work first: people look for works by their id alone.
CREATE UNIQUE INDEX amends_heads_work ON amends_heads (work, saga);

-- What can be claimed, by holder and due time. Parked and finished works are not in it.
CREATE INDEX amends_heads_schedule ON amends_heads (session, due) WHERE session IS NOT NULL OR due IS NOT NULL;

-- Held works with unread signals. Costs a work without signals nothing.
CREATE INDEX amends_heads_signalled ON amends_heads (session) WHERE posted > consumed;

-- What waits for a person. Costs a work that goes well nothing.
CREATE INDEX amends_heads_parked ON amends_heads (number) WHERE status IN ('review', 'paused');

-- The chains. Insert only: a record is accepted on the tail it was decided on and never changes, but that
-- retention may erase bodies, which the hash covers by their own hashes.
CREATE TABLE amends_records (
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

-- Who made inv_5530?
CREATE INDEX amends_records_external_id ON amends_records (external_id) WHERE external_id IS NOT NULL;

-- What others have to say to a work. Insert only; consumed by a record that names the id.
CREATE TABLE amends_signals (
    id      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- never given twice: records name it for ever
    head    INTEGER NOT NULL REFERENCES amends_heads (number),
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('cancel', 'resolve', 'conflict', 'late-answer', 'resume')),
    key     TEXT    NOT NULL,
    actor   TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    verdict TEXT, -- JSON
    UNIQUE (head, key)
) STRICT;

-- The structure of every version of every definition a coordinator registered.
CREATE TABLE amends_definitions (
    saga      TEXT    NOT NULL CHECK (saga <> ''),
    version   INTEGER NOT NULL CHECK (version > 0),
    structure TEXT    NOT NULL,
    spec      TEXT    NOT NULL, -- JSON
    first     INTEGER NOT NULL,
    PRIMARY KEY (saga, version)
) STRICT;

-- Blocked duplicates, counted beside the heads so that a storm of one key locks no work.
CREATE TABLE amends_duplicates (
    saga   TEXT    NOT NULL,
    work   TEXT    NOT NULL,
    source TEXT    NOT NULL,
    count  INTEGER NOT NULL CHECK (count >= 0),
    first  INTEGER NOT NULL,
    last   INTEGER NOT NULL,
    PRIMARY KEY (saga, work, source)
) STRICT;

-- +goose Down
DROP TABLE amends_duplicates;
DROP TABLE amends_definitions;
DROP TABLE amends_signals;
DROP TABLE amends_records;
DROP TABLE amends_heads;
DROP TABLE amends_sessions;
DROP TABLE amends_database;
