-- +goose Up
-- oldest: 0077
-- phase: post

-- The index of 0077 replaces it.
DROP INDEX issues_type;
