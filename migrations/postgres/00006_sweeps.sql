-- Sweeps: how far each has come, and what full listings of a source and a destination saw.

-- +goose Up

-- One row per sweep, and per part of a full listing. Serial grows by one with every page; who finds another one than he
-- read stops.
CREATE TABLE amends_sweeps (
    name    text        NOT NULL COLLATE "C" PRIMARY KEY,
    serial  bigint      NOT NULL,
    updated timestamptz NOT NULL,
    state   text        NOT NULL -- as JSON, of the sweep's own
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- One row per object or document that a listing showed, read in the order of its key. There is no other index: what is
-- seen again changes in place.
CREATE TABLE amends_sightings (
    generation  bigint NOT NULL,             -- the listing that saw it last
    created     timestamptz,
    flags       bigint NOT NULL,
    name        text   NOT NULL COLLATE "C", -- of the sweep
    side        text   NOT NULL COLLATE "C",
    key         text   NOT NULL COLLATE "C", -- natural key
    id          text   NOT NULL COLLATE "C", -- what the side calls it
    part        text   NOT NULL COLLATE "C",
    revision    text,
    fingerprint bytea,                       -- of the fields and the mapping's version
    fields      text,                        -- as JSON
    PRIMARY KEY (name, side, key, id)
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);

-- +goose Down
DROP TABLE amends_sightings;
DROP TABLE amends_sweeps;
