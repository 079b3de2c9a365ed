-- The schema of amends. It is edited in place until the first release. Every table is named amends_ because it may
-- live in the database of the program that uses it.
--
-- The same tables as on Postgres. Times are microseconds since 1970, UTC: datetime(at / 1e6, 'unixepoch').

-- +goose Up

-- The ledger: one chain of records for each saga instance, and the rows by which instances are scheduled and listed.
--
-- The rows of the write path have no CHECK: what a record and an instance may say is checked before it is sent, and
-- amends check reports what breaks it. A constraint costs a lone update more than the update, and a new word a migration.

-- What there is one of.
CREATE TABLE amends_meta (
    one              INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    ledger_id        TEXT    NOT NULL, -- random; a copy keeps it, until a person says that it was restored
    buckets          INTEGER NOT NULL DEFAULT 1, -- of instances, by the hash of their work id; never changes
    bucket_hash      TEXT    NOT NULL DEFAULT 'sha256',
    document_version INTEGER NOT NULL DEFAULT 1, -- the newest among the documents of records
    controls         INTEGER NOT NULL DEFAULT 0, -- the newest version of amends_controls
    acts             INTEGER NOT NULL DEFAULT 0, -- how many are in amends_audit, and the hash of the last
    acts_hash        BLOB,
    secret           BLOB    NOT NULL DEFAULT (randomblob(32)), -- under which names are hashed that were erased
    sealed           INTEGER NOT NULL DEFAULT 0, -- a process without keys stores no bodies
    let_go_at        INTEGER, -- when the latest record was stored of the instances of which nothing is left
    CHECK (buckets IN (1, 2, 4, 8, 16, 32, 64))
) STRICT;

INSERT INTO amends_meta (one, ledger_id) VALUES (1, lower(hex(randomblob(16))));

-- One row per coordinator process and the lease it holds. A dead session never revives.
CREATE TABLE amends_sessions (
    token      INTEGER NOT NULL PRIMARY KEY CHECK (token <> 0),
    label      TEXT    NOT NULL,
    opened_at  INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    dead       INTEGER NOT NULL DEFAULT 0,
    database   TEXT    NOT NULL, -- the identity of the database it was opened on
    knows      TEXT    NOT NULL, -- the definitions the process can run, a JSON array of pairs
    lock       TEXT    NOT NULL, -- empty: one process has the lock of the whole file
    beats      INTEGER NOT NULL DEFAULT 0, -- how often its lease was renewed
    witness    TEXT    NOT NULL  -- kept, new or temporary; else why the process has none
) STRICT;

-- Few sessions live at a time, however many there were.
CREATE INDEX amends_sessions_live ON amends_sessions (token) WHERE NOT dead;

-- One row per saga instance: a projection of its chain, rewritten only when scheduling changes. It can be rebuilt from
-- amends_records.
CREATE TABLE amends_instances (
    ref          INTEGER NOT NULL PRIMARY KEY, -- the row's own, in the order of starting
    due_at       INTEGER, -- no session holds it: when it wants attention
    session      INTEGER, -- which one holds it
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    finished_at  INTEGER,
    received     INTEGER NOT NULL DEFAULT 0, -- signals; the latest one's number
    consumed     INTEGER NOT NULL DEFAULT 0, -- signals
    snapshot_seq INTEGER NOT NULL DEFAULT 1, -- seq of the latest record with a snapshot
    version      INTEGER NOT NULL, -- of the definition
    class        INTEGER NOT NULL DEFAULT 1, -- in the order of claims: 0 compensating, 1 begun, 2 not begun
    unconfirmed  INTEGER NOT NULL DEFAULT 0, -- it was adopted with a step that may or may not have happened
    saga         TEXT    NOT NULL,
    work_id      TEXT    NOT NULL,
    revision     TEXT, -- of the source object
    status       TEXT    NOT NULL,
    reason       TEXT, -- of a review
    step         TEXT, -- the one at issue while it is retried, undone, in review or paused
    waits_for    TEXT, -- no session holds it: the destination that it waits for
    deadline_at  INTEGER, -- when it has to be at its end; null: no time, or that was looked at
    leaves_at    INTEGER, -- it waits for a destination until then at most: its deadline, or the end of a wait
    salt         BLOB, -- of its records' hashes; null once it was erased
    remains      TEXT -- null: all is there; -: the bodies of its records have gone; else what is left of it, JSON: its records have gone, too
) STRICT;

-- A work is accepted once. Work first: people look for instances by their work id alone.
CREATE UNIQUE INDEX amends_instances_work ON amends_instances (work_id, saga);

-- What can be claimed, in the order of claims. Instances of definitions that a process does not know are never met, nor
-- are those that wait for a destination.
CREATE INDEX amends_instances_due ON amends_instances (saga, version, class, due_at)
    WHERE session IS NULL AND due_at IS NOT NULL AND finished_at IS NULL AND waits_for IS NULL;

-- What waits for a destination, in the order of claims. Costs an instance that waits for none nothing.
CREATE INDEX amends_instances_waiting ON amends_instances (waits_for, saga, version, class, created_at, ref, due_at) WHERE waits_for IS NOT NULL;

-- Whose deadline, or wait, ends while it waits for a destination? Costs what has none nothing.
CREATE INDEX amends_instances_leaves ON amends_instances (leaves_at) WHERE leaves_at IS NOT NULL AND waits_for IS NOT NULL;

-- Instances that have ended and have an unread signal. A process that knows their version or a newer one reads it.
CREATE INDEX amends_instances_ended_unread ON amends_instances (saga, due_at, version) WHERE session IS NULL AND due_at IS NOT NULL AND finished_at IS NOT NULL;

-- What each session holds.
CREATE INDEX amends_instances_held ON amends_instances (session) WHERE session IS NOT NULL;

-- Held instances with unread signals. Costs one without signals nothing.
CREATE INDEX amends_instances_held_unread ON amends_instances (session) WHERE session IS NOT NULL AND received > consumed;

-- What has not ended and does not run, by where it stands: what people list. What runs is found by the indexes of claims,
-- because one more would cost each claim a tenth; what has ended is walked by reference.
CREATE INDEX amends_instances_unfinished ON amends_instances (status, ref) WHERE finished_at IS NULL AND status <> 'running';

-- Which instances count a step as done that may or may not have happened? Costs the others nothing.
CREATE INDEX amends_instances_unconfirmed ON amends_instances (ref) WHERE unconfirmed;

-- Instances that were erased on request, by the hash of their work id: a start finds them here.
CREATE TABLE amends_erased (
    name     TEXT    NOT NULL,
    saga     TEXT    NOT NULL,
    instance INTEGER NOT NULL,
    named    INTEGER NOT NULL DEFAULT 1, -- its row has the work id as it was, while a transaction is open that has not seen this one
    PRIMARY KEY (name, saga)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX amends_erased_instance ON amends_erased (instance);
CREATE INDEX amends_erased_named ON amends_erased (name, saga) WHERE named;

-- The chains. Insert only: a record is accepted on the tail it was decided on and never changes. Bodies and snapshots are
-- columns of their own, so that one can be erased without the rest.
CREATE TABLE amends_records (
    instance    INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    session     INTEGER NOT NULL, -- the writer
    seq         INTEGER NOT NULL,
    hash        BLOB    NOT NULL, -- of this record and the hash before it
    external_id TEXT, -- what the destination calls the thing that was made
    doc         TEXT    NOT NULL, -- what the record says, JSON with short names: read it as amends_history
    body        TEXT,
    snapshot    TEXT, -- the folded state before this record

    PRIMARY KEY (instance, seq)
) STRICT;

-- Who made inv_5530?
CREATE INDEX amends_records_external_id ON amends_records (external_id) WHERE external_id IS NOT NULL;

-- By what people find an instance: the tags of its first record. A trigger on the records would have SQLite keep, at each of them, what the
-- pages were before: that is most of what a saga writes.
CREATE TABLE amends_tags (
    tag      TEXT    NOT NULL, -- name=value
    instance INTEGER NOT NULL,
    PRIMARY KEY (tag, instance)
) STRICT, WITHOUT ROWID;

-- What others have to say to an instance, numbered from 1 within it. A record consumes it by naming its number.
CREATE TABLE amends_signals (
    instance    INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    consumed_by INTEGER, -- seq of the record that did
    at          INTEGER NOT NULL,
    kind        TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    actor       TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    doc         TEXT, -- JSON: what it says beside its kind
    by_hand     INTEGER NOT NULL DEFAULT 0, -- a person said it
    PRIMARY KEY (instance, number),
    UNIQUE (instance, key)
) STRICT;

-- What people said, by when. Costs what programs say nothing.
CREATE INDEX amends_signals_by_hand ON amends_signals (at) WHERE by_hand;

-- What no record has consumed yet.
CREATE INDEX amends_signals_unread ON amends_signals (instance, number) WHERE consumed_by IS NULL;

-- How what comes from outside finds the instances that wait for it: by the name and the key of a message, or by the digest of
-- a callback's token, which has no name and stays.
CREATE TABLE amends_awaits (
    name     TEXT NOT NULL,
    key      TEXT NOT NULL,
    saga     TEXT NOT NULL,
    work_id  TEXT NOT NULL,
    step     TEXT NOT NULL,
    step_key TEXT NOT NULL, -- of the request that carried the token; by a message, of the wait
    at       INTEGER NOT NULL,
    PRIMARY KEY (name, key, saga, work_id, step, step_key)
) STRICT, WITHOUT ROWID;

-- Messages that came, also before anything waited for them: each is kept its time, and used once in each saga.
CREATE TABLE amends_messages (
    name       TEXT NOT NULL,
    id         TEXT NOT NULL,
    key        TEXT NOT NULL,
    digest     BLOB NOT NULL, -- of key and body
    body       BLOB,
    at         INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (name, id)
) STRICT;

CREATE INDEX amends_messages_key ON amends_messages (name, key, at);
CREATE INDEX amends_messages_expire ON amends_messages (expires_at);

-- Which wait of a saga uses a message: the first that says so.
CREATE TABLE amends_uses (
    name     TEXT NOT NULL,
    id       TEXT NOT NULL,
    saga     TEXT NOT NULL,
    work_id  TEXT NOT NULL,
    step     TEXT NOT NULL,
    step_key TEXT NOT NULL,
    PRIMARY KEY (name, id, saga),
    FOREIGN KEY (name, id) REFERENCES amends_messages (name, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- What every process obeys: states of destinations, shares of limits, pauses, how long what is kept, and of what nothing goes. One row for each, for ever: what is over has
-- no body.
CREATE TABLE amends_controls (
    version INTEGER NOT NULL CHECK (version > 0),
    at      INTEGER NOT NULL,
    session INTEGER NOT NULL, -- which one set it; 0: a person
    nonce   INTEGER NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('destination', 'share', 'pause', 'retention', 'hold')),
    name    TEXT    NOT NULL CHECK (name <> ''),
    body    TEXT, -- JSON
    actor   TEXT,
    reason  TEXT,
    PRIMARY KEY (kind, name),
    CHECK (session <> 0 OR actor IS NOT NULL)
) STRICT;

-- What people did to them, what they looked at, which withdrawals they released or dropped, which runs they asked for, and what
-- they said of a restored ledger (kinds look, release, drop, run, recover; their version is a random number). Insert only. Numbers
-- have no gap, and a hash covers its row and the hash before it: amends check finds what was changed or deleted here.
CREATE TABLE amends_audit (
    number  INTEGER NOT NULL CHECK (number > 0),
    hash    BLOB    NOT NULL,
    version INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    session INTEGER NOT NULL,
    nonce   INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    body    TEXT, -- JSON
    actor   TEXT    NOT NULL,
    reason  TEXT,
    PRIMARY KEY (kind, name, version),
    UNIQUE (number)
) STRICT;

-- What was asked by HTTP under an Idempotency-Key, and how it was answered; kept for a day.
CREATE TABLE amends_requests (
    key    TEXT    NOT NULL CHECK (key <> ''), -- a digest of who asks and of the key
    nonce  INTEGER NOT NULL,
    asks   TEXT    NOT NULL, -- a digest
    at     INTEGER NOT NULL,
    answer TEXT, -- JSON
    PRIMARY KEY (key)
) STRICT;
CREATE INDEX amends_requests_at ON amends_requests (at);

-- The structure of every version of every definition a coordinator registered.
CREATE TABLE amends_definitions (
    saga      TEXT    NOT NULL CHECK (saga <> ''),
    version   INTEGER NOT NULL CHECK (version > 0),
    structure TEXT    NOT NULL,
    spec      TEXT    NOT NULL, -- JSON
    first_at  INTEGER NOT NULL,
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
    previous INTEGER NOT NULL DEFAULT 0, -- count before it was last raised: the difference is what that call added
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    PRIMARY KEY (work_id, saga, source, counter)
) STRICT, WITHOUT ROWID;

-- Where to look for what is silent. A counter speaks for some hours at most, so few of its rows are older and not silent;
-- and its last time, which every count changes, is in no index.
CREATE INDEX amends_duplicates_first_at ON amends_duplicates (first_at) WHERE counter <> 0;

-- How many duplicates were blocked on each day, by what blocked them and whose they were, and how many webhooks were refused, by why:
-- for ever, while what is counted above is about works and deliveries, which go. A day ends at midnight, UTC.
CREATE TABLE amends_blocked_days (
    day    INTEGER NOT NULL, -- its begin
    layer  TEXT    NOT NULL, -- start, receiver, version, answer, vote, request or lookup; refused:why of webhooks
    source TEXT    NOT NULL, -- of the start, delivery or object; the saga, the destination; '': not known
    count  INTEGER NOT NULL CHECK (count >= 0),
    PRIMARY KEY (day, layer, source)
) STRICT, WITHOUT ROWID;

-- For people and reports. What a document leaves out is filled in; the key of a dispatch is there only when it is not the
-- one that derives from saga, work id, revision, step and direction.
CREATE VIEW amends_history AS
SELECT i.saga, i.work_id, r.seq,
    strftime('%Y-%m-%dT%H:%M:%S', r.at / 1000000, 'unixepoch') || printf('.%06dZ', r.at % 1000000) AS at,
    r.doc ->> 'k' AS kind,
    r.doc ->> 's' AS step,
    coalesce(r.doc ->> 'd', CASE WHEN r.doc ->> 's' IS NOT NULL THEN 'forward' END) AS direction,
    coalesce(r.doc ->> 'n', CASE WHEN r.doc ->> 's' IS NOT NULL THEN 1 END) AS attempt,
    coalesce(r.doc ->> 'st', 'running') AS status,
    r.doc ->> 'r' AS reason,
    r.external_id,
    r.doc ->> 'c' AS class,
    r.doc ->> 'e' AS error,
    r.doc ->> 'note' AS note,
    r.doc ->> 'by' AS actor,
    r.doc ->> 'why' AS why, -- in the actor's words
    r.doc ->> 'cause' AS cause, -- of the start
    r.doc -> 'gone' IS NOT NULL AS erased,
    r.doc ->> 'rev' AS revision,
    r.doc ->> 'ver' AS version,
    r.doc -> 'sig' AS signals,
    r.doc ->> 'w' AS wait_ms,
    r.doc ->> '$.a.s' AS dispatch_step,
    CASE WHEN r.doc -> 'a' IS NOT NULL THEN coalesce(r.doc ->> '$.a.d', 'forward') END AS dispatch_direction,
    CASE WHEN r.doc -> 'a' IS NOT NULL THEN coalesce(r.doc ->> '$.a.n', 1) END AS dispatch_attempt,
    CASE WHEN r.doc -> 'a' IS NOT NULL THEN coalesce(r.doc ->> '$.a.re', 0) END AS dispatch_reissue,
    CASE WHEN r.doc -> 'a' IS NOT NULL THEN coalesce(r.doc ->> '$.a.b', 0) END AS dispatch_budget_ms,
    r.doc ->> '$.a.k' AS dispatch_key,
    r.body,
    coalesce(r.doc ->> 'x', 0) AS body_dropped,
    r.snapshot IS NOT NULL AS has_snapshot,
    printf('%016x', r.session) AS session,
    lower(hex(r.hash)) AS hash,
    r.instance
FROM amends_records AS r
    JOIN amends_instances AS i ON i.ref = r.instance;

CREATE VIEW amends_overview AS
SELECT saga, work_id, version, revision, status, reason, step, waits_for,
    CASE class WHEN 0 THEN 'compensating' WHEN 1 THEN 'begun' ELSE 'unbegun' END AS class,
    CASE WHEN session IS NOT NULL THEN printf('%016x', session) END AS session,
    strftime('%Y-%m-%dT%H:%M:%S', due_at / 1000000, 'unixepoch') || printf('.%06dZ', due_at % 1000000) AS due_at,
    strftime('%Y-%m-%dT%H:%M:%S', created_at / 1000000, 'unixepoch') || printf('.%06dZ', created_at % 1000000) AS created_at,
    strftime('%Y-%m-%dT%H:%M:%S', updated_at / 1000000, 'unixepoch') || printf('.%06dZ', updated_at % 1000000) AS updated_at,
    strftime('%Y-%m-%dT%H:%M:%S', finished_at / 1000000, 'unixepoch') || printf('.%06dZ', finished_at % 1000000) AS finished_at,
    received - consumed AS unread_signals,
    unconfirmed,
    ref AS instance
FROM amends_instances;

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
    version_epoch        INTEGER,          -- raised when the source starts its count again
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

-- How many deliveries of each source met which disposition, counted as they are judged, replayed and purged: a count that
-- a person asks for reads no inbox. Several processes judge at the same time, each in a shard; a count is their sum.
CREATE TABLE amends_inbox_counts (
    source      TEXT    NOT NULL,
    disposition TEXT    NOT NULL,
    shard       INTEGER NOT NULL,
    count       INTEGER NOT NULL,
    last_at     INTEGER NOT NULL, -- when the newest of them was received, which may be gone
    PRIMARY KEY (source, disposition, shard)
) STRICT, WITHOUT ROWID;

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
    held_seq          INTEGER, -- the accepted state whose withdrawal waits for a person
    let_through_seq   INTEGER, -- the last one whose withdrawal was let through, and when
    withdrawn_at      INTEGER,
    changed_at        INTEGER, -- when a state that is no withdrawal was last handed over; null once it is withdrawn
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
CREATE INDEX amends_objects_held ON amends_objects (source, tenant, type, id) WHERE held_seq IS NOT NULL;

-- How much of a source was withdrawn lately, and how much changed otherwise.
CREATE INDEX amends_objects_withdrawn_at ON amends_objects (source, withdrawn_at) WHERE withdrawn_at IS NOT NULL;
CREATE INDEX amends_objects_changed_at ON amends_objects (source, changed_at) WHERE changed_at IS NOT NULL;

-- One row per source of which something was withdrawn. Who counts its withdrawals changes it, so that no other counts at the
-- same time.
CREATE TABLE amends_withdrawals (
    source     TEXT    NOT NULL,
    weighed_at INTEGER NOT NULL,
    PRIMARY KEY (source)
) STRICT, WITHOUT ROWID;

-- The schedule: one row per job, and one per run of it.

-- What is known of a job. Every decision about its runs is taken while this row is locked. The row without a name is
-- the pause of everything.
CREATE TABLE amends_jobs (
    name                      TEXT    NOT NULL PRIMARY KEY,
    schedule                  TEXT,
    time_zone                 TEXT,
    overlap                   TEXT,    -- skip, buffer-one or buffer-all
    catch_up_window           INTEGER, -- nanoseconds
    stale_after               INTEGER, -- periods without a success, then a person is told
    created_at                INTEGER, -- when it was described; null: never
    described_at              INTEGER, -- when its description was last changed
    planned_until             INTEGER, -- the last scheduled time that has a run
    fencing_token             INTEGER NOT NULL DEFAULT 0,
    manual_runs               INTEGER NOT NULL DEFAULT 0,
    last_run                  INTEGER NOT NULL DEFAULT 0, -- the highest number of a run, and of a plan or draft
    last_plan                 INTEGER NOT NULL DEFAULT 0,
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
    job                TEXT    NOT NULL,
    number             INTEGER NOT NULL, -- within its job
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
    PRIMARY KEY (job, number),
    UNIQUE (job, scheduled_for),
    CHECK ((result IS NULL) = (ended_at IS NULL)),
    CHECK (result IS NULL OR leased_until IS NULL),
    CHECK (leased_until IS NULL OR lease_holder IS NOT NULL),
    CHECK ((attempt = 0) = (started_at IS NULL)),
    CHECK (result IS NOT 'skipped' OR attempt = 0)
) STRICT, WITHOUT ROWID;

-- What may still run.
CREATE INDEX amends_runs_open ON amends_runs (job, number) WHERE result IS NULL;

-- The newest of all jobs.
CREATE INDEX amends_runs_created_at ON amends_runs (created_at, job, number);

-- What is old enough to go.
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
    job         TEXT    NOT NULL,
    number      INTEGER NOT NULL, -- within its job
    started_at  INTEGER NOT NULL,
    finished_at INTEGER, -- null: never finished
    state       TEXT    NOT NULL CHECK (state IN ('draft', 'ready', 'discarded')),
    id          TEXT, -- over all that the plan says; equal plans have one
    plan        TEXT, -- as JSON
    PRIMARY KEY (job, number),
    CHECK (state <> 'ready' OR (finished_at IS NOT NULL AND id IS NOT NULL AND plan IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX amends_plans_id ON amends_plans (id) WHERE state = 'ready';

-- One row per key of a plan that is not in sync.
CREATE TABLE amends_findings (
    outcome_at INTEGER,          -- null: nothing came of it yet
    job        TEXT    NOT NULL,
    plan       INTEGER NOT NULL, -- its number
    automatic  INTEGER NOT NULL, -- 1: it is carried out without a person
    key        TEXT    NOT NULL,
    class      TEXT    NOT NULL,
    outcome    TEXT,
    error      TEXT,
    finding    TEXT    NOT NULL, -- as JSON, without the key
    PRIMARY KEY (job, plan, key)
) STRICT, WITHOUT ROWID;

-- The first of each class.
CREATE INDEX amends_findings_class ON amends_findings (job, plan, class, key);

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
    asked    INTEGER,                                -- the first plan in a row for which starts and newer versions wait; 0: not known
    job      TEXT    NOT NULL,
    key      TEXT    NOT NULL,
    class    TEXT    NOT NULL,
    finding  TEXT    NOT NULL, -- as JSON, without the key
    PRIMARY KEY (job, key)
) STRICT, WITHOUT ROWID; -- every run rewrites each row

-- The oldest first.
CREATE INDEX amends_drifts_first_at ON amends_drifts (first_at, job, key);

-- What waits for a decision is asked for by its work.
CREATE INDEX amends_drifts_key ON amends_drifts (key);

-- What people decided about differences: the latest decision on each key.
CREATE TABLE amends_decisions (
    decided_at INTEGER NOT NULL,
    until_at   INTEGER, -- null: until what it is on changes
    ended_at   INTEGER, -- when it was noted what became of it; null: nothing yet
    to_do      INTEGER NOT NULL, -- 1: something is carried out for it
    job        TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    verdict    TEXT    NOT NULL,
    kept       TEXT,             -- the document that stays, of several
    actor      TEXT    NOT NULL,
    reason     TEXT,
    outcome    TEXT,
    error      TEXT,
    finding    TEXT    NOT NULL, -- that was decided on, as JSON, without the key
    PRIMARY KEY (job, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX amends_decisions_key ON amends_decisions (key);

-- +goose Down
DROP TABLE amends_decisions;
DROP TABLE amends_drifts;
DROP TABLE amends_approvals;
DROP TABLE amends_findings;
DROP TABLE amends_plans;
DROP TABLE amends_observations;
DROP TABLE amends_scans;
DROP TABLE amends_runs;
DROP TABLE amends_jobs;
DROP TABLE amends_withdrawals;
DROP TABLE amends_objects;
DROP TABLE amends_payloads;
DROP TABLE amends_inbox_counts;
DROP TABLE amends_inbox;
DROP TABLE amends_digests;
DROP VIEW amends_overview;
DROP VIEW amends_history;
DROP TABLE amends_blocked_days;
DROP TABLE amends_duplicates;
DROP TABLE amends_definitions;
DROP TABLE amends_requests;
DROP TABLE amends_audit;
DROP TABLE amends_controls;
DROP TABLE amends_uses;
DROP TABLE amends_messages;
DROP TABLE amends_awaits;
DROP TABLE amends_signals;
DROP TABLE amends_tags;
DROP TABLE amends_records;
DROP TABLE amends_erased;
DROP TABLE amends_instances;
DROP TABLE amends_sessions;
DROP TABLE amends_meta;
