-- Sweeps: how far each has come, and what full listings of a source and a destination saw. The same tables as on
-- Postgres. Times are microseconds since 1970, UTC.

-- +goose Up

-- One row per sweep, and per part of a full listing. Serial grows by one with every page; who finds another one than he
-- read stops.
CREATE TABLE amends_sweeps (
    name    TEXT    NOT NULL PRIMARY KEY,
    serial  INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    state   TEXT    NOT NULL -- as JSON, of the sweep's own
) STRICT, WITHOUT ROWID;

-- One row per object or document that a listing showed, read in the order of its key. There is no other index: what is
-- seen again changes in place.
CREATE TABLE amends_sightings (
    name        TEXT    NOT NULL, -- of the sweep
    side        TEXT    NOT NULL,
    key         TEXT    NOT NULL, -- natural key
    id          TEXT    NOT NULL, -- what the side calls it
    generation  INTEGER NOT NULL, -- the listing that saw it last
    flags       INTEGER NOT NULL,
    created     INTEGER,
    part        TEXT    NOT NULL,
    revision    TEXT,
    fingerprint BLOB,             -- of the fields and the mapping's version
    fields      TEXT,             -- as JSON
    PRIMARY KEY (name, side, key, id)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE amends_sightings;
DROP TABLE amends_sweeps;
