-- +goose Up
-- Why a runner that may serve only some jobs did not take this one.
ALTER TABLE job_queue ADD COLUMN refusal TEXT NOT NULL DEFAULT '';
