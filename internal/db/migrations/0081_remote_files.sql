-- +goose Up
-- oldest: 0060

-- Where the file of an import is fetched from, sealed; empty for an uploaded file, and
-- after the file was fetched.
ALTER TABLE project_file_imports ADD COLUMN source TEXT NOT NULL DEFAULT '';

-- Where the file of an export is sent to, sealed; empty if nowhere, and when the export
-- has ended.
ALTER TABLE project_exports ADD COLUMN upload TEXT NOT NULL DEFAULT '';
