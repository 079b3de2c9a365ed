-- Hearing: the inbox of verified deliveries, and the gate's entries, one per object of a source of truth. The same
-- tables as on Postgres. Times are microseconds since 1970, UTC.
--
-- What is kept for how long differs, so it lies in tables of its own that are purged by plain deletes: bodies
-- (they may hold personal data), deliveries with their verdicts, and digests, by which a duplicate is known for
-- years after its delivery is gone.

-- +goose Up

-- What recognises a delivery that came before. Counting a copy rewrites this narrow row, never the delivery.
CREATE TABLE amends_digests (
    key     BLOB    NOT NULL PRIMARY KEY CHECK (length(key) = 16), -- of source, tenant and event; a conflict's also of its content
    content BLOB    NOT NULL CHECK (length(content) = 16), -- of what the event says
    number  INTEGER NOT NULL, -- of the delivery
    copies  INTEGER NOT NULL CHECK (copies > 0),
    first   INTEGER NOT NULL,
    last    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX amends_digests_first ON amends_digests (first);

-- One row per event that was delivered, with what the gate made of it.
CREATE TABLE amends_inbox (
    number      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    received    INTEGER NOT NULL, -- by the clock at the door
    at          INTEGER,         -- by the event's own word
    judged      INTEGER,         -- null: not yet
    epoch       INTEGER,         -- of the version, as all until step
    n           INTEGER,
    step        INTEGER,
    deleted     INTEGER,
    key         BLOB    NOT NULL, -- in amends_digests
    dedupe      BLOB    NOT NULL,
    fingerprint BLOB,
    source      TEXT    NOT NULL,
    tenant      TEXT    NOT NULL,
    type        TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    clock       TEXT,
    topic       TEXT,
    event       TEXT,            -- the provider's id
    payload     TEXT,
    secret      TEXT,            -- the name of the one that signed, never the secret
    verdict     TEXT,            -- what was known before the gate
    why         TEXT,
    outcome     TEXT,            -- what the gate made of it
    because     TEXT
) STRICT;

-- What is to be judged, the oldest first.
CREATE INDEX amends_inbox_unjudged ON amends_inbox (number) WHERE judged IS NULL;

-- What became of an object?
CREATE INDEX amends_inbox_object ON amends_inbox (source, type, id, number);

-- What is old enough to go.
CREATE INDEX amends_inbox_received ON amends_inbox (received);

CREATE TABLE amends_bodies (
    number INTEGER NOT NULL PRIMARY KEY, -- of the delivery
    at     INTEGER NOT NULL,             -- when it was stored
    body   TEXT    NOT NULL
) STRICT;

CREATE INDEX amends_bodies_at ON amends_bodies (at);

-- The gate: what is known of each object, what is owed to it, and who works on it. Kept for as long as the object
-- may be spoken of.
CREATE TABLE amends_entries (
    source       TEXT    NOT NULL,
    tenant       TEXT    NOT NULL,
    type         TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    epoch        INTEGER,         -- of the accepted version, as all until step
    n            INTEGER,
    step         INTEGER,
    rank         INTEGER,
    ticket       INTEGER,
    dirty        INTEGER NOT NULL DEFAULT 0,
    clean        INTEGER NOT NULL DEFAULT 0,
    newest_epoch INTEGER,         -- of the newest version anybody spoke of, as all until newest_step
    newest_n     INTEGER,
    newest_step  INTEGER,
    accepted     INTEGER NOT NULL DEFAULT 0,
    delivered    INTEGER NOT NULL DEFAULT 0,
    fence        INTEGER,
    attempts     INTEGER,
    missing      INTEGER,
    reread       INTEGER,
    due          INTEGER,         -- null: never
    until        INTEGER,         -- of the lease
    first        INTEGER,
    updated      INTEGER,
    deleted      INTEGER,
    fingerprint  BLOB,
    clock        TEXT,
    newest_clock TEXT,
    holder       TEXT,
    last_error   TEXT,
    blocked      TEXT,
    parked       TEXT,            -- events before their turn, a JSON array
    body         TEXT,
    PRIMARY KEY (source, tenant, type, id)
) STRICT;

-- What somebody should look at.
CREATE INDEX amends_entries_due ON amends_entries (due) WHERE due IS NOT NULL;

-- What waits for a person.
CREATE INDEX amends_entries_blocked ON amends_entries (source, tenant, type, id) WHERE blocked IS NOT NULL;

-- +goose Down
DROP TABLE amends_entries;
DROP TABLE amends_bodies;
DROP TABLE amends_inbox;
DROP TABLE amends_digests;
