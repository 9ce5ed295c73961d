-- +goose Up
-- oldest: 0060

-- Runs of an entity that were started: only the last one may store its steps. The other
-- column is the run whose stored state is current; 0 for that of an older release.
ALTER TABLE bulk_import_entities ADD COLUMN runs BIGINT NOT NULL DEFAULT 0;
ALTER TABLE bulk_import_entities ADD COLUMN checkpoint_run BIGINT NOT NULL DEFAULT 0;
