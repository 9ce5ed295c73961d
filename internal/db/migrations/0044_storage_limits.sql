-- +goose Up

-- The number of bytes of the package files of a project, so that its limit and its
-- statistics do not add up all files.
CREATE TABLE package_sizes (
  project_id BIGINT PRIMARY KEY REFERENCES projects (id) ON DELETE CASCADE,
  size       BIGINT NOT NULL
) BY_KEY;
INSERT INTO package_sizes (project_id, size) SELECT project_id, CAST(SUM(size) AS BIGINT) FROM package_files GROUP BY project_id;
DROP INDEX package_files_project_id_size;
CREATE INDEX package_files_project_id ON package_files (project_id);
CREATE INDEX packages_project_id ON packages (project_id, id);
-- All versions of a package are read in the order of their IDs.
CREATE INDEX packages_project_id_type_lookup_id ON packages (project_id, type, lookup, id);

-- Direct uploads to a project count until they are verified.
CREATE INDEX lfs_uploads_project_id ON lfs_uploads (project_id, created_at);
