-- Where the leader serves HTTP, and the secret of its term, for coordinators that stand by.
ALTER TABLE tessera.leader
    ADD COLUMN http text NOT NULL DEFAULT '',
    ADD COLUMN key bytea NOT NULL DEFAULT '';
INSERT INTO tessera.version (number) VALUES (3);
