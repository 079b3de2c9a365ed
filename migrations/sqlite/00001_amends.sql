-- The schema of amends. It is edited in place until the first release. Every table is named amends_ because it may
-- live in the database of the program that uses it.
--
-- The same tables as on Postgres. Times are microseconds since 1970, UTC: datetime(at / 1e6, 'unixepoch'). Constraints on
-- the write path spell out CASE and OR: for IN, SQLite builds a table per row.

-- +goose Up

-- The ledger: chains of records, one per unit of work, and the heads by which works are scheduled and listed.

-- Which file this is. A restored copy keeps the name, a ledger begun anew has another.
CREATE TABLE amends_database (
    one      INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    identity TEXT    NOT NULL,
    controls INTEGER NOT NULL DEFAULT 0 -- the newest version of amends_controls
) STRICT;

INSERT INTO amends_database (one, identity) VALUES (1, 'sqlite-' || lower(hex(randomblob(8))));

-- One row per coordinator process and the lease it holds. A dead session never revives.
CREATE TABLE amends_sessions (
    token   INTEGER NOT NULL PRIMARY KEY CHECK (token <> 0),
    label   TEXT    NOT NULL,
    opened  INTEGER NOT NULL,
    renewed INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    dead    INTEGER NOT NULL DEFAULT 0 CHECK (dead IN (0, 1)),
    database TEXT   NOT NULL, -- the identity of the database it was opened on
    knows    TEXT   NOT NULL  -- the definitions the process can run, a JSON array of pairs
) STRICT;

-- Few sessions live at a time, however many there were.
CREATE INDEX amends_sessions_live ON amends_sessions (token) WHERE NOT dead;

-- A projection of the chains, rewritten only when scheduling changes. It can be rebuilt from amends_records.
CREATE TABLE amends_heads (
    number   INTEGER NOT NULL PRIMARY KEY,
    due      INTEGER,              -- no session holds the work: when it wants attention
    session  INTEGER,              -- which one holds it
    created  INTEGER NOT NULL,
    updated  INTEGER NOT NULL,
    finished INTEGER,
    posted   INTEGER NOT NULL DEFAULT 0,
    consumed INTEGER NOT NULL DEFAULT 0,
    base     INTEGER NOT NULL DEFAULT 1, -- seq of the latest record with a snapshot
    version  INTEGER NOT NULL,
    rank     INTEGER NOT NULL DEFAULT 1, -- its class in the order of claims: 0 compensating, 1 begun, 2 not begun
    saga     TEXT    NOT NULL,
    work     TEXT    NOT NULL,
    revision TEXT,
    status   TEXT    NOT NULL,
    reason   TEXT,
    waits_for TEXT,                  -- no session holds the work: the destination that it waits for

    CONSTRAINT amends_heads_names CHECK (saga <> '' AND work <> '' AND version > 0),
    CONSTRAINT amends_heads_status CHECK (CASE status
        WHEN 'running' THEN 1 WHEN 'completed' THEN 1 WHEN 'retrying' THEN 1
        WHEN 'compensating' THEN 1 WHEN 'review' THEN 1 WHEN 'paused' THEN 1
        WHEN 'adopting' THEN 1 WHEN 'compensated' THEN 1 ELSE 0 END),
    CONSTRAINT amends_heads_holder CHECK (session IS NULL OR (session <> 0 AND due IS NULL)),
    CONSTRAINT amends_heads_waits CHECK (waits_for IS NULL
        OR (session IS NULL AND due IS NOT NULL AND finished IS NULL AND posted = consumed AND waits_for <> '')),
    CONSTRAINT amends_heads_live CHECK (session IS NOT NULL OR due IS NOT NULL OR finished IS NOT NULL
        OR status = 'review' OR status = 'paused' OR status = 'adopting'),
    CONSTRAINT amends_heads_review CHECK ((status = 'review') = (reason IS NOT NULL)),
    CONSTRAINT amends_heads_finished CHECK (
        (status = 'completed' OR status = 'compensated') = (finished IS NOT NULL)),
    CONSTRAINT amends_heads_counts CHECK (consumed BETWEEN 0 AND posted AND base >= 1)
) STRICT;

-- A work is accepted once. Work first: people look for works by their id alone.
CREATE UNIQUE INDEX amends_heads_work ON amends_heads (work, saga);

-- What can be claimed, in the order of claims. Works of definitions that a process does not know are never met, nor are
-- those that wait for a destination.
CREATE INDEX amends_heads_due ON amends_heads (saga, version, rank, due)
    WHERE session IS NULL AND due IS NOT NULL AND finished IS NULL AND waits_for IS NULL;

-- What waits for a destination, in the order of claims. Costs a work that waits for none nothing.
CREATE INDEX amends_heads_waits ON amends_heads (waits_for, saga, version, rank, number, due) WHERE waits_for IS NOT NULL;

-- Works that have ended and have an unread signal. A process that knows their version or a newer one reads it.
CREATE INDEX amends_heads_news ON amends_heads (saga, due, version) WHERE session IS NULL AND due IS NOT NULL AND finished IS NOT NULL;

-- What each session holds.
CREATE INDEX amends_heads_held ON amends_heads (session) WHERE session IS NOT NULL;

-- Held works with unread signals. Costs a work without signals nothing.
CREATE INDEX amends_heads_signalled ON amends_heads (session) WHERE session IS NOT NULL AND posted > consumed;

-- What waits for a person. Costs a work that goes well nothing.
CREATE INDEX amends_heads_parked ON amends_heads (number) WHERE status IN ('review', 'paused', 'adopting');

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
    rank          INTEGER, -- of its head, unless the record left the schedule alone
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
        WHEN 'done' THEN 1 WHEN 'started' THEN 1 WHEN 'dispatched' THEN 1 WHEN 'not-sent' THEN 1
        WHEN 'refused' THEN 1 WHEN 'unknown' THEN 1 WHEN 'lost' THEN 1 WHEN 'fault' THEN 1
        WHEN 'found' THEN 1 WHEN 'unfinished' THEN 1 WHEN 'not-found' THEN 1 WHEN 'unclear' THEN 1
        WHEN 'several' THEN 1 WHEN 'resolved' THEN 1 WHEN 'cancelled' THEN 1 WHEN 'noted' THEN 1
        WHEN 'sent-to-review' THEN 1 WHEN 'paused' THEN 1 WHEN 'resumed' THEN 1 WHEN 'retried' THEN 1
        WHEN 'skipped' THEN 1 WHEN 'revision-received' THEN 1 WHEN 'revised' THEN 1
        WHEN 'forgotten' THEN 1 WHEN 'adopted' THEN 1 ELSE 0 END),
    CONSTRAINT amends_records_status CHECK (CASE status
        WHEN 'running' THEN 1 WHEN 'completed' THEN 1 WHEN 'retrying' THEN 1
        WHEN 'compensating' THEN 1 WHEN 'review' THEN 1 WHEN 'paused' THEN 1
        WHEN 'adopting' THEN 1 WHEN 'compensated' THEN 1 ELSE 0 END),
    CONSTRAINT amends_records_direction CHECK (direction IS NULL OR CASE direction
        WHEN 'forward' THEN 1 WHEN 'undo' THEN 1 ELSE 0 END),
    CONSTRAINT amends_records_review CHECK ((status = 'review') = (reason IS NOT NULL)),
    CONSTRAINT amends_records_reason CHECK (reason IS NULL OR CASE reason
        WHEN 'in-doubt' THEN 1 WHEN 'undo-failed' THEN 1 WHEN 'after-pivot' THEN 1
        WHEN 'exhausted' THEN 1 WHEN 'poison' THEN 1
        WHEN 'conflict' THEN 1 ELSE 0 END),
    CONSTRAINT amends_records_class CHECK (class IS NULL OR CASE class
        WHEN 'unknown' THEN 1 WHEN 'not-sent' THEN 1 WHEN 'refused' THEN 1 WHEN 'fault' THEN 1 WHEN 'stopped' THEN 1 WHEN 'outage' THEN 1
        ELSE 0 END),
    CONSTRAINT amends_records_wait CHECK (wait_ms >= 0),
    CONSTRAINT amends_records_rank CHECK (rank IS NULL OR rank BETWEEN 0 AND 2),
    -- A record arms something when arm_attempt is there.
    CONSTRAINT amends_records_arm CHECK (CASE WHEN arm_attempt IS NULL
        THEN arm_step IS NULL AND arm_direction IS NULL AND arm_key IS NULL AND arm_budget_ms IS NULL
        ELSE arm_budget_ms >= 0 AND (arm_direction = 'forward' OR arm_direction = 'undo') END)
) STRICT;

-- Who made inv_5530?
CREATE INDEX amends_records_external_id ON amends_records (external_id) WHERE external_id IS NOT NULL;

-- Which works count a step as done because nobody can tell whether it happened?
CREATE INDEX amends_records_unconfirmed ON amends_records (head) WHERE kind = 'adopted' AND class = 'unknown';

-- What others have to say to a work. A record consumes it by naming its id.
CREATE TABLE amends_signals (
    id      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- never given twice: records name it for ever
    head    INTEGER NOT NULL REFERENCES amends_heads (number),
    read    INTEGER,          -- seq of the record that consumed it
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('cancel', 'resolve', 'conflict', 'late-answer', 'wake',
        'revise', 'keep', 'pause', 'resume', 'retry', 'skip')),
    key     TEXT    NOT NULL,
    actor   TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    verdict TEXT, -- JSON: what it says
    UNIQUE (head, key)
) STRICT;

-- What no record has consumed yet.
CREATE INDEX amends_signals_unread ON amends_signals (head, id) WHERE read IS NULL;

-- What every process obeys: states of destinations, shares of limits, pauses. One row for each, for ever: what is over has
-- no body.
CREATE TABLE amends_controls (
    version INTEGER NOT NULL CHECK (version > 0),
    at      INTEGER NOT NULL,
    session INTEGER NOT NULL, -- which one set it; 0: a person
    nonce   INTEGER NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('destination', 'share', 'pause')),
    name    TEXT    NOT NULL CHECK (name <> ''),
    body    TEXT, -- JSON
    actor   TEXT,
    reason  TEXT,
    PRIMARY KEY (kind, name),
    CHECK (session <> 0 OR actor IS NOT NULL)
) STRICT;

-- What people did to them. Insert only.
CREATE TABLE amends_acts (
    version INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    session INTEGER NOT NULL,
    nonce   INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    body    TEXT, -- JSON
    actor   TEXT    NOT NULL,
    reason  TEXT,
    PRIMARY KEY (kind, name, version)
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

-- Blocked duplicates, counted beside the instances so that a storm of one key locks none. Each process stores the greatest
-- total that it has seen, under a counter of its own, so that storing it twice changes nothing; readers sum.
CREATE TABLE amends_duplicates (
    saga     TEXT    NOT NULL,
    work_id  TEXT    NOT NULL,
    source   TEXT    NOT NULL,
    counter  INTEGER NOT NULL, -- a random name; 0: those that are silent for a day, folded into one
    count    INTEGER NOT NULL CHECK (count >= 0),
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    PRIMARY KEY (work_id, saga, source, counter)
) STRICT, WITHOUT ROWID;

-- Where to look for what is silent. A counter speaks for some hours at most, so few of its rows are older and not silent;
-- and its last time, which every count changes, is in no index.
CREATE INDEX amends_duplicates_first_at ON amends_duplicates (first_at) WHERE counter <> 0;

-- The inbox: verified deliveries of webhooks and scans, and what is known of each object that they speak of.
--
-- What is kept for how long differs, so it lies in tables of its own that are purged by plain deletes: payloads (they may
-- hold personal data), deliveries with their dispositions, and digests, by which a duplicate is known for years after its
-- delivery is gone.

-- What recognises a delivery that came before. Counting a copy rewrites this narrow row, never the delivery.
CREATE TABLE amends_digests (
    key      BLOB    NOT NULL PRIMARY KEY CHECK (length(key) = 16), -- of source and event; a conflict's also of its content
    content  BLOB    NOT NULL CHECK (length(content) = 16),         -- of what the event says
    delivery INTEGER NOT NULL,                                      -- the number in amends_inbox
    copies   INTEGER NOT NULL CHECK (copies > 0),
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX amends_digests_first_at ON amends_digests (first_at);

-- One row per event that was delivered, and its disposition.
CREATE TABLE amends_inbox (
    number               INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    received_at          INTEGER NOT NULL, -- by the receiver's clock
    occurred_at          INTEGER,          -- by the event's own word
    processed_at         INTEGER,          -- null: not yet
    version_epoch        INTEGER,          -- raised when the source begins to count anew
    version_number       INTEGER,          -- a counter, or nanoseconds since 1970
    version_precision    INTEGER,          -- of a time: nanoseconds within which the source cannot tell two apart
    deleted              INTEGER,
    digest               BLOB    NOT NULL, -- the key in amends_digests
    dedupe_key           BLOB    NOT NULL,
    fingerprint          BLOB,             -- of the object's fields
    source               TEXT    NOT NULL, -- the object it speaks of, as all until id
    tenant               TEXT    NOT NULL,
    type                 TEXT    NOT NULL,
    id                   TEXT    NOT NULL,
    version_kind         TEXT, -- counter; time: of the object's change; event: the event's time; null: it has no version
    topic                TEXT,
    event_id             TEXT, -- the provider's
    payload_kind         TEXT, -- full, delta or thin
    signed_by            TEXT, -- the name of the secret, never the secret
    receiver_disposition TEXT, -- what the receiver knew already, and why
    receiver_reason      TEXT,
    disposition          TEXT, -- what became of it, and why
    reason               TEXT
) STRICT;

-- What is to be processed, the oldest first.
CREATE INDEX amends_inbox_unprocessed ON amends_inbox (number) WHERE processed_at IS NULL;

-- What became of an object?
CREATE INDEX amends_inbox_object ON amends_inbox (source, type, id, number);

-- What is old enough to go.
CREATE INDEX amends_inbox_received_at ON amends_inbox (received_at);

CREATE TABLE amends_payloads (
    delivery  INTEGER NOT NULL PRIMARY KEY, -- the number in amends_inbox
    stored_at INTEGER NOT NULL,
    body      TEXT    NOT NULL
) STRICT;

CREATE INDEX amends_payloads_stored_at ON amends_payloads (stored_at);

-- One row per object of a source of truth: its accepted version, what is owed to it, and the lease of who works on it. Kept
-- for as long as the object may be spoken of.
CREATE TABLE amends_objects (
    source            TEXT    NOT NULL,
    tenant            TEXT    NOT NULL,
    type              TEXT    NOT NULL,
    id                TEXT    NOT NULL,
    version_epoch     INTEGER, -- of the accepted version, as in amends_inbox
    version_number    INTEGER,
    version_precision INTEGER,
    origin            INTEGER,                    -- how it was learned: null by an event, 1 by a fetch
    fetch_seq         INTEGER,                    -- the fetch that brought it: fetch_requested when it began
    fetch_requested   INTEGER NOT NULL DEFAULT 0, -- a fetch is owed while it is above fetch_completed
    fetch_completed   INTEGER NOT NULL DEFAULT 0,
    newest_epoch      INTEGER, -- of the newest version that was spoken of
    newest_number     INTEGER,
    newest_precision  INTEGER,
    accepted_seq      INTEGER NOT NULL DEFAULT 0, -- a delivery to the saga is owed while it is above delivered_seq
    delivered_seq     INTEGER NOT NULL DEFAULT 0,
    fencing_token     INTEGER,
    failed_attempts   INTEGER, -- in a row
    first_missing_at  INTEGER, -- when a fetch first found nothing; a second one confirms it
    reread_at         INTEGER, -- when the same state is to be read once more
    first_behind_at   INTEGER, -- since when fetches find less than was spoken of
    cause             INTEGER, -- the delivery that was the last reason to fetch or to accept
    due_at            INTEGER, -- null: never
    leased_until      INTEGER,
    first_seen_at     INTEGER,
    updated_at        INTEGER,
    deleted           INTEGER,
    fingerprint       BLOB,
    version_kind      TEXT,
    newest_kind       TEXT,
    lease_holder      TEXT,
    last_error        TEXT,
    blocked_reason    TEXT, -- why it waits for a person
    pending_events    TEXT, -- that came before their turn, a JSON array
    body              TEXT,
    PRIMARY KEY (source, tenant, type, id)
) STRICT;

-- What is to be worked on.
CREATE INDEX amends_objects_due_at ON amends_objects (due_at) WHERE due_at IS NOT NULL;

-- What waits for a person.
CREATE INDEX amends_objects_blocked ON amends_objects (source, tenant, type, id) WHERE blocked_reason IS NOT NULL;

-- The schedule: one row per job, and one per run of it.

-- What is known of a job. Every decision about its runs is taken while this row is locked. The row without a name is
-- the pause of everything.
CREATE TABLE amends_jobs (
    name                      TEXT    NOT NULL PRIMARY KEY,
    schedule                  TEXT,
    time_zone                 TEXT,
    overlap                   TEXT,    -- skip or buffer-one
    catch_up_window           INTEGER, -- nanoseconds
    stale_after               INTEGER, -- periods without a success, then a person is told
    created_at                INTEGER, -- when it was described; null: never
    described_at              INTEGER, -- when its description was last changed
    planned_until             INTEGER, -- the last scheduled time that has a run
    fencing_token             INTEGER NOT NULL DEFAULT 0,
    manual_runs               INTEGER NOT NULL DEFAULT 0,
    paused_at                 INTEGER,
    paused_by                 TEXT,
    paused_reason             TEXT,
    approved_at               INTEGER,
    approved_by               TEXT,
    approved_reason           TEXT,
    last_success              TEXT, -- what it was scheduled for
    last_success_scheduled_at INTEGER,
    last_success_ended_at     INTEGER,
    failures                  INTEGER NOT NULL DEFAULT 0, -- runs since then
    watermark                 TEXT
) STRICT, WITHOUT ROWID;

-- A job and a scheduled time have one run at most. It is recorded before it begins, and ends once.
CREATE TABLE amends_runs (
    number             INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    job                TEXT    NOT NULL,
    scheduled_for      TEXT    NOT NULL, -- the civil time in the zone of the schedule; manual:1 for what a person wanted
    scheduled_at       INTEGER NOT NULL,
    first_scheduled_at INTEGER NOT NULL,                             -- the first of the scheduled times that it stands for
    scheduled_times    INTEGER NOT NULL CHECK (scheduled_times > 0), -- how many they are
    due_at             INTEGER NOT NULL,
    created_at         INTEGER NOT NULL,
    requested          TEXT, -- what a person wanted; null: it is by the schedule
    requested_by       TEXT,
    requested_reason   TEXT,
    started_at         INTEGER,
    ended_at           INTEGER,
    attempt            INTEGER NOT NULL DEFAULT 0,
    crashes            INTEGER NOT NULL DEFAULT 0,
    fencing_token      INTEGER NOT NULL DEFAULT 0,
    lease_holder       TEXT,    -- who works on it, or did last
    leased_until       INTEGER, -- null: it is not worked on
    result             TEXT    CHECK (result IN ('ok', 'partial', 'refused', 'failed', 'stopped', 'skipped')),
    cursor_before      TEXT,
    cursor_after       TEXT,
    seen               INTEGER NOT NULL DEFAULT 0,
    planned            INTEGER NOT NULL DEFAULT 0,
    applied            INTEGER NOT NULL DEFAULT 0,
    over_limit         INTEGER NOT NULL DEFAULT 0,
    errors             INTEGER NOT NULL DEFAULT 0,
    calls              INTEGER NOT NULL DEFAULT 0,
    plan               TEXT,
    note               TEXT,
    error              TEXT,
    UNIQUE (job, scheduled_for),
    CHECK ((result IS NULL) = (ended_at IS NULL)),
    CHECK (result IS NULL OR leased_until IS NULL),
    CHECK (leased_until IS NULL OR lease_holder IS NOT NULL),
    CHECK ((attempt = 0) = (started_at IS NULL)),
    CHECK (result IS NOT 'skipped' OR attempt = 0)
) STRICT;

-- What may still run.
CREATE INDEX amends_runs_open ON amends_runs (job, number) WHERE result IS NULL;

-- The history of a job, and what of it is old enough to go.
CREATE INDEX amends_runs_job ON amends_runs (job, number);
CREATE INDEX amends_runs_ended_at ON amends_runs (job, ended_at);

-- A job works on one run at a time.
CREATE UNIQUE INDEX amends_runs_leased ON amends_runs (job) WHERE leased_until IS NOT NULL;

-- Scans: how far each has come, and what full listings of a source and a destination showed.

-- One row per scan, and per partition of a full listing. The version grows by one with every page; who finds another one
-- than he read stops.
CREATE TABLE amends_scans (
    name       TEXT    NOT NULL PRIMARY KEY,
    version    INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    checkpoint TEXT    NOT NULL -- as JSON
) STRICT, WITHOUT ROWID;

-- One row per object or document that a listing showed, read in the order of its key. There is no other index: what is
-- seen again changes in place.
CREATE TABLE amends_observations (
    scan        INTEGER NOT NULL, -- the number of the listing that showed it last
    created_at  INTEGER,
    flags       INTEGER NOT NULL, -- 1 wanted, 2 void, 4 locked, 8 foreign fields, 16 unreadable
    name        TEXT    NOT NULL, -- of the scan
    side        TEXT    NOT NULL, -- source or destination
    key         TEXT    NOT NULL, -- natural key
    id          TEXT    NOT NULL, -- what the side calls it
    partition   TEXT    NOT NULL,
    revision    TEXT,
    fingerprint BLOB, -- of the fields and the mapping's version
    fields      TEXT, -- as JSON
    PRIMARY KEY (name, side, key, id)
) STRICT, WITHOUT ROWID;

-- Plans: what a comparison of source, destination and ledger found, what became of each action, who approved it, and
-- the drift that lasts from run to run.

-- One row per plan. A draft is being written; what is discarded is about to be erased with its findings, in parts.
CREATE TABLE amends_plans (
    number      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    started_at  INTEGER NOT NULL,
    finished_at INTEGER, -- null: never finished
    job         TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('draft', 'ready', 'discarded')),
    id          TEXT, -- over all that the plan says; equal plans have one
    plan        TEXT, -- as JSON
    CHECK (state <> 'ready' OR (finished_at IS NOT NULL AND id IS NOT NULL AND plan IS NOT NULL))
) STRICT;

CREATE INDEX amends_plans_job ON amends_plans (job, number);

CREATE INDEX amends_plans_id ON amends_plans (id, number) WHERE state = 'ready';

-- One row per key of a plan that is not in sync.
CREATE TABLE amends_findings (
    outcome_at INTEGER,          -- null: nothing came of it yet
    plan       INTEGER NOT NULL, -- its number
    automatic  INTEGER NOT NULL, -- 1: it is carried out without a person
    key        TEXT    NOT NULL,
    class      TEXT    NOT NULL,
    outcome    TEXT,
    error      TEXT,
    finding    TEXT    NOT NULL, -- as JSON, without the key
    PRIMARY KEY (plan, key)
) STRICT, WITHOUT ROWID;

-- The first of each class.
CREATE INDEX amends_findings_class ON amends_findings (plan, class, key);

-- Who wants a plan to be applied although it is over its limits.
CREATE TABLE amends_approvals (
    approved_at INTEGER NOT NULL,
    plan_id     TEXT    NOT NULL PRIMARY KEY,
    actor       TEXT    NOT NULL,
    reason      TEXT
) STRICT;

-- One row per difference for as long as run after run finds it.
CREATE TABLE amends_drifts (
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    runs     INTEGER NOT NULL CHECK (runs > 0), -- in a row
    plan     INTEGER NOT NULL,                  -- that told it last
    job      TEXT    NOT NULL,
    key      TEXT    NOT NULL,
    class    TEXT    NOT NULL,
    finding  TEXT    NOT NULL, -- as JSON, without the key
    PRIMARY KEY (job, key)
) STRICT, WITHOUT ROWID; -- every run writes each row anew

-- The oldest first.
CREATE INDEX amends_drifts_first_at ON amends_drifts (first_at, job, key);

-- +goose Down
DROP TABLE amends_drifts;
DROP TABLE amends_approvals;
DROP TABLE amends_findings;
DROP TABLE amends_plans;
DROP TABLE amends_observations;
DROP TABLE amends_scans;
DROP TABLE amends_runs;
DROP TABLE amends_jobs;
DROP TABLE amends_objects;
DROP TABLE amends_payloads;
DROP TABLE amends_inbox;
DROP TABLE amends_digests;
DROP TABLE amends_duplicates;
DROP TABLE amends_definitions;
DROP TABLE amends_acts;
DROP TABLE amends_controls;
DROP TABLE amends_signals;
DROP TABLE amends_records;
DROP TABLE amends_heads;
DROP TABLE amends_sessions;
DROP TABLE amends_database;
