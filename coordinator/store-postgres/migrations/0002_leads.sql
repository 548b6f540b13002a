-- One row for each lead: the lead before it, and how many commits there were when it began. A data
-- folder whose coordinator had answers for more of them finds here what the database has lost.
CREATE TABLE tessera.lead (
    epoch bigint PRIMARY KEY,
    before bigint NOT NULL,
    commits bigint NOT NULL,
    owner text NOT NULL,
    began_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO tessera.version (number) VALUES (2);
