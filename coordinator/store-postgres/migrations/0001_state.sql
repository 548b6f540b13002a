-- The state of one farm: who leads, the journal in groups, the newest snapshot, and other values.
-- Sent as one message, so it happens as a whole or not at all.
CREATE SCHEMA IF NOT EXISTS tessera;
CREATE TABLE tessera.version (
    number integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);
-- One row. It is compared and moved by every commit.
CREATE TABLE tessera.leader (
    id integer PRIMARY KEY CHECK (id = 1),
    farm text NOT NULL,
    epoch bigint NOT NULL,
    head bigint NOT NULL,
    commits bigint NOT NULL,
    owner text NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 10);
-- One row for the records of one commit: first_seq to first_seq + n - 1.
CREATE TABLE tessera.journal (
    first_seq bigint PRIMARY KEY,
    n integer NOT NULL CHECK (n > 0),
    epoch bigint NOT NULL,
    bytes bytea NOT NULL
);
ALTER TABLE tessera.journal ALTER COLUMN bytes SET STORAGE EXTERNAL;
-- The state after record seq, written by the commit of this number, in parts.
CREATE TABLE tessera.snapshot (
    at bigint NOT NULL,
    part integer NOT NULL,
    parts integer NOT NULL,
    seq bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (at, part)
);
ALTER TABLE tessera.snapshot ALTER COLUMN bytes SET STORAGE EXTERNAL;
-- Extents of spools (s), tokens (t), members (i), and the head of the audit log (a), by their keys.
CREATE TABLE tessera.value (
    key bytea PRIMARY KEY,
    bytes bytea NOT NULL
);
INSERT INTO tessera.version (number) VALUES (1);
