-- The schema of amends. It is edited in place until the first release. Every table is named amends_ because it may
-- live in the database of the program that uses it.

-- +goose Up

-- The ledger: one chain of records for each saga instance, and the rows by which instances are scheduled and listed.
--
-- The rows of the write path have no CHECK: what a record and an instance may say is checked before it is sent, and
-- amends check reports what breaks it. A constraint costs a lone update more than the update, and a new word a migration.

-- What there is one of.
CREATE TABLE amends_meta (
    one              smallint NOT NULL PRIMARY KEY CHECK (one = 1),
    ledger_id        text     NOT NULL,           -- random; a copy keeps it, until a person says that it was restored
    buckets          smallint NOT NULL DEFAULT 1, -- of instances, by the hash of their work id; never changes
    bucket_hash      text     NOT NULL DEFAULT 'sha256',
    document_version smallint NOT NULL DEFAULT 1, -- the newest among the documents of records
    controls         bigint   NOT NULL DEFAULT 0, -- the newest version of amends_controls
    acts             bigint   NOT NULL DEFAULT 0, -- how many are in amends_audit, and the hash of the last
    acts_hash        bytea,
    secret           bytea    NOT NULL DEFAULT decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'), -- under which names are hashed that were erased
    sealed           boolean  NOT NULL DEFAULT false, -- a process without keys stores no bodies
    let_go_at        timestamptz, -- when the latest record was stored of the instances of which nothing is left
    CHECK (buckets IN (1, 2, 4, 8, 16, 32, 64))
) WITH (fillfactor = 50);

INSERT INTO amends_meta (one, ledger_id) VALUES (1, replace(gen_random_uuid()::text, '-', ''));

-- One row per coordinator process and the lease it holds. A dead session never revives.
CREATE TABLE amends_sessions (
    token      bigint      NOT NULL PRIMARY KEY CHECK (token <> 0),
    label      text        NOT NULL,
    opened_at  timestamptz NOT NULL,
    renewed_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    dead       boolean     NOT NULL DEFAULT false,
    database   text        NOT NULL, -- the identity of the database it was opened on
    knows      text        NOT NULL, -- the definitions the process can run, a JSON array of pairs
    lock       text        NOT NULL, -- the file that it keeps locked on its host while it lives; empty: none
    beats      bigint      NOT NULL DEFAULT 0, -- how often its lease was renewed
    witness    text        NOT NULL  -- kept, new or temporary; else why the process has none
) WITH (fillfactor = 50); -- a heartbeat rewrites its row in place

-- Few sessions live at a time, however many there were.
CREATE INDEX amends_sessions_live ON amends_sessions (token) WHERE NOT dead;

-- One row per saga instance: a projection of its chain, rewritten only when scheduling changes. It can be rebuilt from
-- amends_records.
CREATE TABLE amends_instances (
    ref          bigint      NOT NULL PRIMARY KEY, -- drawn by the program: bucket, time and a little chance; only its order is read out of it
    due_at       timestamptz,          -- no session holds it: when it wants attention
    session      bigint,               -- which one holds it
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    finished_at  timestamptz,
    received     bigint      NOT NULL DEFAULT 0, -- signals; the latest one's number
    consumed     bigint      NOT NULL DEFAULT 0, -- signals
    snapshot_seq integer     NOT NULL DEFAULT 1, -- seq of the latest record with a snapshot
    version      integer     NOT NULL,           -- of the definition
    class        smallint    NOT NULL DEFAULT 1, -- in the order of claims: 0 compensating, 1 begun, 2 not begun
    unconfirmed  boolean     NOT NULL DEFAULT false, -- it was adopted with a step that may or may not have happened
    saga         text        NOT NULL COLLATE "C",
    work_id      text        NOT NULL COLLATE "C",
    revision     text,                           -- of the source object
    status       text        NOT NULL,
    reason       text,                           -- of a review
    step         text        COLLATE "C",        -- the one at issue while it is retried, undone, in review or paused
    waits_for    text        COLLATE "C",        -- no session holds it: the destination that it waits for
    deadline_at  timestamptz,                    -- when it has to be at its end; null: no time, or that was looked at
    leaves_at    timestamptz,                    -- it waits for a destination until then at most: its deadline, or the end of a wait
    salt         bytea,                          -- of its records' hashes; null once it was erased
    remains      text                            -- null: all is there; -: the bodies of its records have gone; else what is left of it, JSON: its records have gone, too
) WITH (
    fillfactor = 85,
    -- The scheduling index keeps an entry of every finished instance until vacuum takes it: vacuum by number of
    -- instances, not by a share of a table that only grows.
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
    autovacuum_vacuum_cost_delay = 1
);

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
    name     text    NOT NULL COLLATE "C",
    saga     text    NOT NULL COLLATE "C",
    instance bigint  NOT NULL,
    named    boolean NOT NULL DEFAULT true, -- its row has the work id as it was, while a transaction is open that has not seen this one
    PRIMARY KEY (name, saga)
);

CREATE UNIQUE INDEX amends_erased_instance ON amends_erased (instance);
CREATE INDEX amends_erased_named ON amends_erased (name, saga) WHERE named;

-- The chains. Insert only: a record is accepted on the tail it was decided on and never changes. Bodies and snapshots are
-- columns of their own, so that one can be erased without the rest.
CREATE TABLE amends_records (
    instance    bigint      NOT NULL,
    at          timestamptz NOT NULL,
    session     bigint      NOT NULL, -- the writer
    seq         integer     NOT NULL,
    hash        bytea       NOT NULL, -- of this record and the hash before it
    external_id text,                 -- what the destination calls the thing that was made
    doc         text        NOT NULL, -- what the record says, JSON with short names: read it as amends_history
    body        text,
    snapshot    text,                 -- the folded state before this record

    PRIMARY KEY (instance, seq)
) WITH (
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 500000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 250000
);

-- Who made inv_5530?
CREATE INDEX amends_records_external_id ON amends_records (external_id) WHERE external_id IS NOT NULL;

-- By what people find an instance. A tag of its first record is a row here, whichever way that record came.
CREATE TABLE amends_tags (
    tag      text   NOT NULL COLLATE "C", -- name=value
    instance bigint NOT NULL,
    PRIMARY KEY (tag, instance)
);

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION amends_tag() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO amends_tags (tag, instance)
    SELECT t.tag, NEW.instance FROM jsonb_array_elements_text(NEW.doc::jsonb -> 'tags') AS t (tag)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- Costs a record without tags nothing.
CREATE TRIGGER amends_tag AFTER INSERT ON amends_records FOR EACH ROW
    WHEN (NEW.seq = 1 AND NEW.doc LIKE '%"tags":[%') EXECUTE FUNCTION amends_tag();

-- What others have to say to an instance, numbered from 1 within it. A record consumes it by naming its number.
CREATE TABLE amends_signals (
    instance    bigint      NOT NULL,
    number      bigint      NOT NULL,
    consumed_by integer,              -- seq of the record that did
    at          timestamptz NOT NULL,
    kind        text        NOT NULL,
    key         text        NOT NULL,
    actor       text        NOT NULL,
    reason      text        NOT NULL,
    doc         text, -- JSON: what it says beside its kind
    by_hand     boolean     NOT NULL DEFAULT false, -- a person said it
    PRIMARY KEY (instance, number),
    UNIQUE (instance, key)
);

-- What people said, by when. Costs what programs say nothing.
CREATE INDEX amends_signals_by_hand ON amends_signals (at) WHERE by_hand;

-- What no record has consumed yet.
CREATE INDEX amends_signals_unread ON amends_signals (instance, number) WHERE consumed_by IS NULL;

-- How what comes from outside finds the instances that wait for it: by the name and the key of a message, or by the digest of
-- a callback's token, which has no name and stays.
CREATE TABLE amends_awaits (
    name     text NOT NULL COLLATE "C",
    key      text NOT NULL COLLATE "C",
    saga     text NOT NULL COLLATE "C",
    work_id  text NOT NULL COLLATE "C",
    step     text NOT NULL COLLATE "C",
    step_key text NOT NULL COLLATE "C", -- of the request that carried the token; by a message, of the wait
    at       timestamptz NOT NULL,
    PRIMARY KEY (name, key, saga, work_id, step, step_key)
);

-- Messages that came, also before anything waited for them: each is kept its time, and used once in each saga.
CREATE TABLE amends_messages (
    name       text NOT NULL COLLATE "C",
    id         text NOT NULL COLLATE "C",
    key        text NOT NULL COLLATE "C",
    digest     bytea NOT NULL, -- of key and body
    body       bytea,
    at         timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (name, id)
);

CREATE INDEX amends_messages_key ON amends_messages (name, key, at);
CREATE INDEX amends_messages_expire ON amends_messages (expires_at);

-- Which wait of a saga uses a message: the first that says so.
CREATE TABLE amends_uses (
    name     text NOT NULL COLLATE "C",
    id       text NOT NULL COLLATE "C",
    saga     text NOT NULL COLLATE "C",
    work_id  text NOT NULL COLLATE "C",
    step     text NOT NULL COLLATE "C",
    step_key text NOT NULL COLLATE "C",
    PRIMARY KEY (name, id, saga),
    FOREIGN KEY (name, id) REFERENCES amends_messages (name, id) ON DELETE CASCADE
);

-- What every process obeys: states of destinations, shares of limits, pauses, how long what is kept, and of what nothing goes. One row for each, for ever: what is over has
-- no body.
CREATE TABLE amends_controls (
    version bigint      NOT NULL CHECK (version > 0),
    at      timestamptz NOT NULL,
    session bigint      NOT NULL, -- which one set it; 0: a person
    nonce   bigint      NOT NULL,
    kind    text        NOT NULL COLLATE "C" CHECK (kind IN ('destination', 'share', 'pause', 'retention', 'hold')),
    name    text        NOT NULL COLLATE "C" CHECK (name <> ''),
    body    text, -- JSON
    actor   text,
    reason  text,
    PRIMARY KEY (kind, name),
    CHECK (session <> 0 OR actor IS NOT NULL)
) WITH (fillfactor = 70);

-- What people did to them, what they looked at, which withdrawals they released or dropped, which runs they asked for, and what
-- they said of a restored ledger (kinds look, release, drop, run, recover; their version is a random number). Insert only. Numbers
-- have no gap, and a hash covers its row and the hash before it: amends check finds what was changed or deleted here.
CREATE TABLE amends_audit (
    number  bigint      NOT NULL CHECK (number > 0),
    hash    bytea       NOT NULL,
    version bigint      NOT NULL,
    at      timestamptz NOT NULL,
    session bigint      NOT NULL,
    nonce   bigint      NOT NULL,
    kind    text        NOT NULL COLLATE "C",
    name    text        NOT NULL COLLATE "C",
    body    text, -- JSON
    actor   text        NOT NULL,
    reason  text,
    PRIMARY KEY (kind, name, version),
    UNIQUE (number)
);

-- What was asked by HTTP under an Idempotency-Key, and how it was answered; kept for a day.
CREATE TABLE amends_requests (
    key    text        NOT NULL COLLATE "C" CHECK (key <> ''), -- a digest of who asks and of the key
    nonce  bigint      NOT NULL,
    asks   text        NOT NULL, -- a digest
    at     timestamptz NOT NULL,
    answer text, -- JSON
    PRIMARY KEY (key)
);
CREATE INDEX amends_requests_at ON amends_requests (at);

-- The structure of every version of every definition a coordinator registered.
CREATE TABLE amends_definitions (
    saga      text        NOT NULL COLLATE "C" CHECK (saga <> ''),
    version   integer     NOT NULL CHECK (version > 0),
    structure text        NOT NULL,
    spec      text        NOT NULL, -- JSON
    first_at  timestamptz NOT NULL,
    PRIMARY KEY (saga, version)
);

-- Blocked duplicates, counted beside the instances so that a storm of one key locks none. Each process stores the greatest
-- total that it has seen, under a counter of its own, so that storing it twice changes nothing; readers sum.
CREATE TABLE amends_duplicates (
    saga     text        NOT NULL COLLATE "C",
    work_id  text        NOT NULL COLLATE "C",
    source   text        NOT NULL,
    counter  bigint      NOT NULL, -- a random name; 0: those that are silent for a day, folded into one
    count    bigint      NOT NULL CHECK (count >= 0),
    previous bigint      NOT NULL DEFAULT 0, -- count before it was last raised: the difference is what that call added
    first_at timestamptz NOT NULL,
    last_at  timestamptz NOT NULL,
    PRIMARY KEY (work_id, saga, source, counter)
) WITH (fillfactor = 70);

-- Where to look for what is silent. A counter speaks for some hours at most, so few of its rows are older and not silent;
-- and its last time, which every count changes, is in no index.
CREATE INDEX amends_duplicates_first_at ON amends_duplicates (first_at) WHERE counter <> 0;

-- How many duplicates were blocked on each day, by what blocked them and whose they were, and how many webhooks were refused, by why:
-- for ever, while what is counted above is about works and deliveries, which go. A day ends at midnight, UTC. Every process writes the
-- same rows, each as the last of its transaction.
CREATE TABLE amends_blocked_days (
    day    date   NOT NULL,
    layer  text   NOT NULL COLLATE "C", -- start, receiver, version, answer, vote, request or lookup; refused:why of webhooks
    source text   NOT NULL COLLATE "C", -- of the start, delivery or object; the saga, the destination; '': not known
    count  bigint NOT NULL CHECK (count >= 0),
    PRIMARY KEY (day, layer, source)
) WITH (fillfactor = 70);

-- For people and reports: grant SELECT on the two views, and on no table. What a document leaves out is filled in; the key
-- of a dispatch is there only when it is not the one that derives from saga, work id, revision, step and direction.
CREATE VIEW amends_history AS
SELECT i.saga, i.work_id, r.seq, r.at,
    d.doc ->> 'k' AS kind,
    d.doc ->> 's' AS step,
    coalesce(d.doc ->> 'd', CASE WHEN d.doc ? 's' THEN 'forward' END) AS direction,
    coalesce((d.doc ->> 'n')::integer, CASE WHEN d.doc ? 's' THEN 1 END) AS attempt,
    coalesce(d.doc ->> 'st', 'running') AS status,
    d.doc ->> 'r' AS reason,
    r.external_id,
    d.doc ->> 'c' AS class,
    d.doc ->> 'e' AS error,
    d.doc ->> 'note' AS note,
    d.doc ->> 'by' AS actor,
    d.doc ->> 'why' AS why, -- in the actor's words
    d.doc ->> 'cause' AS cause, -- of the start
    d.doc -> 'gone' IS NOT NULL AS erased,
    d.doc ->> 'rev' AS revision,
    (d.doc ->> 'ver')::integer AS version,
    d.doc ->> 'sig' AS signals,
    (d.doc ->> 'w')::bigint AS wait_ms,
    d.doc -> 'a' ->> 's' AS dispatch_step,
    CASE WHEN d.doc ? 'a' THEN coalesce(d.doc -> 'a' ->> 'd', 'forward') END AS dispatch_direction,
    CASE WHEN d.doc ? 'a' THEN coalesce((d.doc -> 'a' ->> 'n')::integer, 1) END AS dispatch_attempt,
    CASE WHEN d.doc ? 'a' THEN coalesce((d.doc -> 'a' ->> 're')::integer, 0) END AS dispatch_reissue,
    CASE WHEN d.doc ? 'a' THEN coalesce((d.doc -> 'a' ->> 'b')::bigint, 0) END AS dispatch_budget_ms,
    d.doc -> 'a' ->> 'k' AS dispatch_key,
    r.body,
    coalesce((d.doc ->> 'x')::boolean, false) AS body_dropped,
    r.snapshot IS NOT NULL AS has_snapshot,
    lpad(to_hex(r.session), 16, '0') AS session,
    encode(r.hash, 'hex') AS hash,
    r.instance
FROM amends_records AS r
    JOIN amends_instances AS i ON i.ref = r.instance
    CROSS JOIN LATERAL (SELECT r.doc::jsonb AS doc) AS d;

CREATE VIEW amends_overview AS
SELECT saga, work_id, version, revision, status, reason, step, waits_for,
    CASE class WHEN 0 THEN 'compensating' WHEN 1 THEN 'begun' ELSE 'unbegun' END AS class,
    lpad(to_hex(session), 16, '0') AS session,
    due_at, created_at, updated_at, finished_at,
    received - consumed AS unread_signals,
    unconfirmed,
    ref AS instance
FROM amends_instances;

-- The inbox: verified deliveries of webhooks and scans, and what is known of each object that they speak of.
--
-- What is kept for how long differs, so it lies in tables of its own that are purged by plain deletes: payloads (they may
-- hold personal data), deliveries with their dispositions, and digests, by which a duplicate is known for years after its
-- delivery is gone.

-- What recognises a delivery that came before. Counting a copy rewrites this narrow row in place, never the
-- delivery.
CREATE TABLE amends_digests (
    key      bytea       NOT NULL PRIMARY KEY CHECK (octet_length(key) = 16), -- of source and event; a conflict's also of its content
    content  bytea       NOT NULL CHECK (octet_length(content) = 16),         -- of what the event says
    delivery bigint      NOT NULL,                                            -- the number in amends_inbox
    copies   bigint      NOT NULL CHECK (copies > 0),
    first_at timestamptz NOT NULL,
    last_at  timestamptz NOT NULL
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX amends_digests_first_at ON amends_digests (first_at);

-- One row per event that was delivered, and its disposition.
CREATE TABLE amends_inbox (
    number               bigint      NOT NULL GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    received_at          timestamptz NOT NULL, -- by the receiver's clock
    occurred_at          timestamptz,          -- by the event's own word
    processed_at         timestamptz,          -- null: not yet
    version_epoch        bigint,               -- raised when the source starts its count again
    version_number       bigint,               -- a counter, or nanoseconds since 1970
    version_precision    bigint,               -- of a time: nanoseconds within which the source cannot tell two apart
    deleted              boolean,
    digest               bytea       NOT NULL, -- the key in amends_digests
    dedupe_key           bytea       NOT NULL,
    fingerprint          bytea,                            -- of the object's fields
    source               text        NOT NULL COLLATE "C", -- the object it speaks of, as all until id
    tenant               text        NOT NULL COLLATE "C",
    type                 text        NOT NULL COLLATE "C",
    id                   text        NOT NULL COLLATE "C",
    version_kind         text, -- counter; time: of the object's change; event: the event's time; null: it has no version
    topic                text,
    event_id             text, -- the provider's
    payload_kind         text, -- full, delta or thin
    signed_by            text, -- the name of the secret, never the secret
    receiver_disposition text, -- what the receiver knew already, and why
    receiver_reason      text,
    disposition          text, -- what became of it, and why
    reason               text
) WITH (
    -- The index of what is unprocessed keeps an entry of every processed delivery until vacuum takes it.
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
    autovacuum_vacuum_cost_delay = 1
);

-- What is to be processed, the oldest first.
CREATE INDEX amends_inbox_unprocessed ON amends_inbox (number) WHERE processed_at IS NULL;

-- What became of an object?
CREATE INDEX amends_inbox_object ON amends_inbox (source, type, id, number);

-- What is old enough to go.
CREATE INDEX amends_inbox_received_at ON amends_inbox (received_at);

-- How many deliveries of each source met which disposition, counted as they are judged, replayed and purged: a count that
-- a person asks for reads no inbox. Several processes judge at the same time, each in a shard; a count is their sum.
CREATE TABLE amends_inbox_counts (
    source      text        NOT NULL COLLATE "C",
    disposition text        NOT NULL COLLATE "C",
    shard       smallint    NOT NULL,
    count       bigint      NOT NULL,
    last_at     timestamptz NOT NULL, -- when the newest of them was received, which may be gone
    PRIMARY KEY (source, disposition, shard)
) WITH (fillfactor = 50);

CREATE TABLE amends_payloads (
    delivery  bigint      NOT NULL PRIMARY KEY, -- the number in amends_inbox
    stored_at timestamptz NOT NULL,
    body      text        NOT NULL
);

CREATE INDEX amends_payloads_stored_at ON amends_payloads (stored_at);

-- One row per object of a source of truth: its accepted version, what is owed to it, and the lease of who works on it. Kept
-- for as long as the object may be spoken of.
CREATE TABLE amends_objects (
    source            text        NOT NULL COLLATE "C",
    tenant            text        NOT NULL COLLATE "C",
    type              text        NOT NULL COLLATE "C",
    id                text        NOT NULL COLLATE "C",
    version_epoch     bigint, -- of the accepted version, as in amends_inbox
    version_number    bigint,
    version_precision bigint,
    origin            bigint,                         -- how it was learned: null by an event, 1 by a fetch
    fetch_seq         bigint,                         -- the fetch that brought it: fetch_requested when it began
    fetch_requested   bigint      NOT NULL DEFAULT 0, -- a fetch is owed while it is above fetch_completed
    fetch_completed   bigint      NOT NULL DEFAULT 0,
    newest_epoch      bigint, -- of the newest version that was spoken of
    newest_number     bigint,
    newest_precision  bigint,
    accepted_seq      bigint      NOT NULL DEFAULT 0, -- a delivery to the saga is owed while it is above delivered_seq
    delivered_seq     bigint      NOT NULL DEFAULT 0,
    fencing_token     bigint,
    failed_attempts   bigint,      -- in a row
    first_missing_at  timestamptz, -- when a fetch first found nothing; a second one confirms it
    reread_at         timestamptz, -- when the same state is to be read once more
    first_behind_at   timestamptz, -- since when fetches find less than was spoken of
    cause             bigint,      -- the delivery that was the last reason to fetch or to accept
    due_at            timestamptz, -- null: never
    held_seq          bigint,      -- the accepted state whose withdrawal waits for a person
    let_through_seq   bigint,      -- the last one whose withdrawal was let through, and when
    withdrawn_at      timestamptz,
    changed_at        timestamptz, -- when a state that is no withdrawal was last handed over; null once it is withdrawn
    leased_until      timestamptz,
    first_seen_at     timestamptz,
    updated_at        timestamptz,
    deleted           boolean,
    fingerprint       bytea,
    version_kind      text,
    newest_kind       text,
    lease_holder      text,
    last_error        text,
    blocked_reason    text, -- why it waits for a person
    pending_events    text, -- that came before their turn, a JSON array
    body              text,
    PRIMARY KEY (source, tenant, type, id)
) WITH (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_vacuum_cost_delay = 1
);

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
    source     text        NOT NULL COLLATE "C",
    weighed_at timestamptz NOT NULL,
    PRIMARY KEY (source)
);

-- The schedule: one row per job, and one per run of it.

-- What is known of a job. Every decision about its runs is taken while this row is locked. The row without a name is
-- the pause of everything.
CREATE TABLE amends_jobs (
    name                      text        NOT NULL COLLATE "C" PRIMARY KEY,
    schedule                  text,
    time_zone                 text,
    overlap                   text,        -- skip, buffer-one or buffer-all
    catch_up_window           bigint,      -- nanoseconds
    stale_after               bigint,      -- periods without a success, then a person is told
    created_at                timestamptz, -- when it was described; null: never
    described_at              timestamptz, -- when its description was last changed
    planned_until             timestamptz, -- the last scheduled time that has a run
    fencing_token             bigint      NOT NULL DEFAULT 0,
    manual_runs               bigint      NOT NULL DEFAULT 0,
    last_run                  bigint      NOT NULL DEFAULT 0, -- the highest number of a run, and of a plan or draft
    last_plan                 bigint      NOT NULL DEFAULT 0,
    paused_at                 timestamptz,
    paused_by                 text,
    paused_reason             text,
    approved_at               timestamptz,
    approved_by               text,
    approved_reason           text,
    last_success              text, -- what it was scheduled for
    last_success_scheduled_at timestamptz,
    last_success_ended_at     timestamptz,
    failures                  bigint      NOT NULL DEFAULT 0, -- runs since then
    watermark                 text
);

-- A job and a scheduled time have one run at most. It is recorded before it begins, and ends once.
CREATE TABLE amends_runs (
    job                text        NOT NULL COLLATE "C",
    number             bigint      NOT NULL, -- within its job
    scheduled_for      text        NOT NULL COLLATE "C", -- the civil time in the zone of the schedule; manual:1 for what a person wanted
    scheduled_at       timestamptz NOT NULL,
    first_scheduled_at timestamptz NOT NULL,                             -- the first of the scheduled times that it stands for
    scheduled_times    bigint      NOT NULL CHECK (scheduled_times > 0), -- how many they are
    due_at             timestamptz NOT NULL,
    created_at         timestamptz NOT NULL,
    requested          text, -- what a person wanted; null: it is by the schedule
    requested_by       text,
    requested_reason   text,
    started_at         timestamptz,
    ended_at           timestamptz,
    attempt            bigint      NOT NULL DEFAULT 0,
    crashes            bigint      NOT NULL DEFAULT 0,
    fencing_token      bigint      NOT NULL DEFAULT 0,
    lease_holder       text,        -- who works on it, or did last
    leased_until       timestamptz, -- null: it is not worked on
    result             text        CHECK (result IN ('ok', 'partial', 'refused', 'failed', 'stopped', 'skipped')),
    cursor_before      text,
    cursor_after       text,
    seen               bigint      NOT NULL DEFAULT 0,
    planned            bigint      NOT NULL DEFAULT 0,
    applied            bigint      NOT NULL DEFAULT 0,
    over_limit         bigint      NOT NULL DEFAULT 0,
    errors             bigint      NOT NULL DEFAULT 0,
    calls              bigint      NOT NULL DEFAULT 0,
    plan               text,
    note               text,
    error              text,
    PRIMARY KEY (job, number),
    UNIQUE (job, scheduled_for),
    CHECK ((result IS NULL) = (ended_at IS NULL)),
    CHECK (result IS NULL OR leased_until IS NULL),
    CHECK (leased_until IS NULL OR lease_holder IS NOT NULL),
    CHECK ((attempt = 0) = (started_at IS NULL)),
    CHECK (result IS DISTINCT FROM 'skipped' OR attempt = 0)
);

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
    name       text        NOT NULL COLLATE "C" PRIMARY KEY,
    version    bigint      NOT NULL,
    updated_at timestamptz NOT NULL,
    checkpoint text        NOT NULL -- as JSON
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- One row per object or document that a listing showed, read in the order of its key. There is no other index: what is
-- seen again changes in place.
CREATE TABLE amends_observations (
    scan        bigint      NOT NULL, -- the number of the listing that showed it last
    created_at  timestamptz,
    flags       bigint      NOT NULL,             -- 1 wanted, 2 void, 4 locked, 8 foreign fields, 16 unreadable
    name        text        NOT NULL COLLATE "C", -- of the scan
    side        text        NOT NULL COLLATE "C", -- source or destination
    key         text        NOT NULL COLLATE "C", -- natural key
    id          text        NOT NULL COLLATE "C", -- what the side calls it
    partition   text        NOT NULL COLLATE "C",
    revision    text,
    fingerprint bytea, -- of the fields and the mapping's version
    fields      text,  -- as JSON
    PRIMARY KEY (name, side, key, id)
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);

-- Plans: what a comparison of source, destination and ledger found, what became of each action, who approved it, and
-- the drift that lasts from run to run.

-- One row per plan. A draft is being written; what is discarded is about to be erased with its findings, in parts.
CREATE TABLE amends_plans (
    job         text        NOT NULL COLLATE "C",
    number      bigint      NOT NULL, -- within its job
    started_at  timestamptz NOT NULL,
    finished_at timestamptz, -- null: never finished
    state       text        NOT NULL CHECK (state IN ('draft', 'ready', 'discarded')),
    id          text        COLLATE "C", -- over all that the plan says; equal plans have one
    plan        text,                    -- as JSON
    PRIMARY KEY (job, number),
    CHECK (state <> 'ready' OR (finished_at IS NOT NULL AND id IS NOT NULL AND plan IS NOT NULL))
);

CREATE INDEX amends_plans_id ON amends_plans (id) WHERE state = 'ready';

-- One row per key of a plan that is not in sync.
CREATE TABLE amends_findings (
    outcome_at timestamptz,          -- null: nothing came of it yet
    job        text        NOT NULL COLLATE "C",
    plan       bigint      NOT NULL, -- its number
    automatic  smallint    NOT NULL, -- 1: it is carried out without a person
    key        text        NOT NULL COLLATE "C",
    class      text        NOT NULL,
    outcome    text,
    error      text,
    finding    text        NOT NULL, -- as JSON, without the key
    PRIMARY KEY (job, plan, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02);

-- The first of each class.
CREATE INDEX amends_findings_class ON amends_findings (job, plan, class, key);

-- Who wants a plan to be applied although it is over its limits.
CREATE TABLE amends_approvals (
    approved_at timestamptz NOT NULL,
    plan_id     text        NOT NULL COLLATE "C" PRIMARY KEY,
    actor       text        NOT NULL,
    reason      text
);

-- One row per difference for as long as run after run finds it.
CREATE TABLE amends_drifts (
    first_at timestamptz NOT NULL,
    last_at  timestamptz NOT NULL,
    runs     bigint      NOT NULL CHECK (runs > 0), -- in a row
    plan     bigint      NOT NULL,                  -- that told it last
    asked    bigint,                                -- the first plan in a row for which starts and newer versions wait; 0: not known
    job      text        NOT NULL COLLATE "C",
    key      text        NOT NULL COLLATE "C",
    class    text        NOT NULL,
    finding  text        NOT NULL, -- as JSON, without the key
    PRIMARY KEY (job, key)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02); -- every run rewrites each row

-- The oldest first.
CREATE INDEX amends_drifts_first_at ON amends_drifts (first_at, job, key);

-- What waits for a decision is asked for by its work.
CREATE INDEX amends_drifts_key ON amends_drifts (key);

-- What people decided about differences: the latest decision on each key.
CREATE TABLE amends_decisions (
    decided_at timestamptz NOT NULL,
    until_at   timestamptz,          -- null: until what it is on changes
    ended_at   timestamptz,          -- when it was noted what became of it; null: nothing yet
    to_do      smallint    NOT NULL, -- 1: something is carried out for it
    job        text        NOT NULL COLLATE "C",
    key        text        NOT NULL COLLATE "C",
    verdict    text        NOT NULL,
    kept       text,                 -- the document that stays, of several
    actor      text        NOT NULL,
    reason     text,
    outcome    text,
    error      text,
    finding    text        NOT NULL, -- that was decided on, as JSON, without the key
    PRIMARY KEY (job, key)
);

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
DROP FUNCTION amends_tag;
DROP TABLE amends_instances;
DROP TABLE amends_sessions;
DROP TABLE amends_meta;
