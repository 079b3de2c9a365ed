-- Running: one row per job that is to be done by a schedule, and one per run of it. The same tables as on Postgres.
-- Times are microseconds since 1970, UTC; durations are nanoseconds.

-- +goose Up

-- What is known of a job. Every decision about its runs is taken while this row is locked. The row without a name is
-- the pause of everything.
CREATE TABLE amends_jobs (
    name        TEXT    NOT NULL PRIMARY KEY,
    schedule    TEXT,
    zone        TEXT,
    overlap     TEXT,
    catch_up    INTEGER,
    jitter      INTEGER, -- percent of a period
    fresh       INTEGER, -- periods without a good run, then a person is told
    still       INTEGER,
    first       INTEGER, -- when it was described; null: nobody has
    described   INTEGER, -- when its description was last changed
    planned     INTEGER, -- the last instant that has a row
    fence       INTEGER NOT NULL DEFAULT 0,
    asked       INTEGER NOT NULL DEFAULT 0,
    paused      INTEGER,
    paused_by   TEXT,
    paused_why  TEXT,
    approved    INTEGER,
    approved_by TEXT,
    approved_why TEXT,
    good        TEXT,    -- the instant of the last good run, as all until good_ended
    good_at     INTEGER,
    good_ended  INTEGER,
    failures    INTEGER NOT NULL DEFAULT 0,
    watermark   TEXT,
    moved       INTEGER,
    frozen      INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- A job and an instant have one run at most. It is recorded before it begins, and ends once.
CREATE TABLE amends_runs (
    number   INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    job      TEXT    NOT NULL,
    instant  TEXT    NOT NULL, -- the civil time in the zone of the schedule
    at       INTEGER NOT NULL,
    since    INTEGER NOT NULL, -- the first of the instants that it stands for
    instants INTEGER NOT NULL CHECK (instants > 0),
    due      INTEGER NOT NULL,
    created  INTEGER NOT NULL,
    ask      TEXT,             -- what was asked for by hand
    asked_by TEXT,
    why      TEXT,
    began    INTEGER,
    ended    INTEGER,
    attempt  INTEGER NOT NULL DEFAULT 0,
    crashes  INTEGER NOT NULL DEFAULT 0,
    fence    INTEGER NOT NULL DEFAULT 0,
    holder   TEXT,             -- who is, or was last, at it
    until    INTEGER,          -- of the lease; null: nobody is at it
    verdict  TEXT CHECK (verdict IN ('ok', 'partial', 'refused', 'failed', 'stopped', 'skipped')),
    cursor_before TEXT,
    cursor_after  TEXT,
    seen     INTEGER NOT NULL DEFAULT 0,
    planned  INTEGER NOT NULL DEFAULT 0,
    applied  INTEGER NOT NULL DEFAULT 0,
    refused  INTEGER NOT NULL DEFAULT 0,
    errors   INTEGER NOT NULL DEFAULT 0,
    calls    INTEGER NOT NULL DEFAULT 0,
    plan     TEXT,
    note     TEXT,
    error    TEXT,
    UNIQUE (job, instant),
    CHECK ((verdict IS NULL) = (ended IS NULL)),
    CHECK (verdict IS NULL OR until IS NULL),
    CHECK (until IS NULL OR holder IS NOT NULL),
    CHECK ((attempt = 0) = (began IS NULL)),
    CHECK (verdict IS NOT 'skipped' OR attempt = 0)
) STRICT;

-- What may still run.
CREATE INDEX amends_runs_open ON amends_runs (job, number) WHERE verdict IS NULL;

-- The history of a job, and what of it is old enough to go.
CREATE INDEX amends_runs_job ON amends_runs (job, number);
CREATE INDEX amends_runs_ended ON amends_runs (job, ended);

-- A job is at work on one run at a time.
CREATE UNIQUE INDEX amends_runs_held ON amends_runs (job) WHERE until IS NOT NULL;

-- +goose Down
DROP TABLE amends_runs;
DROP TABLE amends_jobs;
