-- Plans: what a comparison of source, destination and ledger found, what became of each action, who approved it, and
-- the drift that lasts from run to run. The same tables as on Postgres. Times are microseconds since 1970, UTC.

-- +goose Up

-- One row per plan. A draft is being written and nobody's plan; what is dropped is about to be erased with its
-- findings, in parts.
CREATE TABLE amends_plans (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    begun  INTEGER NOT NULL,
    made   INTEGER,             -- null: never finished
    job    TEXT    NOT NULL,
    state  TEXT    NOT NULL CHECK (state IN ('draft', 'plan', 'dropped')),
    id     TEXT,                -- over all that the plan says; equal plans have one
    plan   TEXT,                -- as JSON
    CHECK (state <> 'plan' OR (made IS NOT NULL AND id IS NOT NULL AND plan IS NOT NULL))
) STRICT;

CREATE INDEX amends_plans_job ON amends_plans (job, number);

CREATE INDEX amends_plans_id ON amends_plans (id, number) WHERE state = 'plan';

-- One row per key of a plan that is not in sync.
CREATE TABLE amends_findings (
    at      INTEGER,            -- of the outcome; null: nothing came of it yet
    plan    INTEGER NOT NULL,
    acts    INTEGER NOT NULL,   -- 1: it is carried out without a person
    key     TEXT    NOT NULL,
    class   TEXT    NOT NULL,
    outcome TEXT,
    error   TEXT,
    finding TEXT    NOT NULL,   -- as JSON, without the key
    PRIMARY KEY (plan, key)
) STRICT, WITHOUT ROWID;

-- The first of each class.
CREATE INDEX amends_findings_class ON amends_findings (plan, class, key);

-- Who wants a plan to be applied although it is over its bounds.
CREATE TABLE amends_approvals (
    at     INTEGER NOT NULL,
    id     TEXT    NOT NULL PRIMARY KEY, -- of the plan
    actor  TEXT    NOT NULL,
    reason TEXT
) STRICT;

-- One row per difference for as long as run after run finds it.
CREATE TABLE amends_drifts (
    first   INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    times   INTEGER NOT NULL CHECK (times > 0), -- runs in a row
    plan    INTEGER NOT NULL,                   -- that told it last
    job     TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    class   TEXT    NOT NULL,
    finding TEXT    NOT NULL,                   -- as JSON, without the key
    PRIMARY KEY (job, key)
) STRICT, WITHOUT ROWID;

-- The oldest first.
CREATE INDEX amends_drifts_first ON amends_drifts (first, job, key);

-- +goose Down
DROP TABLE amends_drifts;
DROP TABLE amends_approvals;
DROP TABLE amends_findings;
DROP TABLE amends_plans;
