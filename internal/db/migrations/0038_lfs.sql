-- +goose Up

-- Git LFS objects. The content of each digest is stored once for all projects.
CREATE TABLE lfs_objects (
  id         AUTO_ID,
  oid        TEXT NOT NULL, -- SHA-256 of the content, in hex
  size       BIGINT NOT NULL,
  blob       TEXT NOT NULL, -- key in the object storage
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX lfs_objects_oid ON lfs_objects (oid);

-- The projects that hold an object. used_at is the time of the last upload or push
-- that named it: unreferenced objects are removed some time after it.
CREATE TABLE lfs_project_objects (
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  object_id  BIGINT NOT NULL REFERENCES lfs_objects (id),
  used_at    BIGINT NOT NULL,
  PRIMARY KEY (project_id, object_id)
) BY_KEY;
CREATE INDEX lfs_project_objects_object_id ON lfs_project_objects (object_id, project_id);

-- Sums of the objects of a project, and when its repository was searched for
-- pointers last.
CREATE TABLE lfs_projects (
  project_id BIGINT PRIMARY KEY REFERENCES projects (id) ON DELETE CASCADE,
  size       BIGINT NOT NULL,
  checked_at BIGINT NOT NULL
) BY_KEY;
CREATE INDEX lfs_projects_checked_at ON lfs_projects (checked_at, project_id);

-- Keys in the object storage that no object has, or not yet: uploads under way and
-- removed content. project_id, oid and size are those of a direct upload.
CREATE TABLE lfs_uploads (
  blob       TEXT PRIMARY KEY,
  project_id BIGINT NOT NULL,
  oid        TEXT NOT NULL,
  size       BIGINT NOT NULL,
  created_at BIGINT NOT NULL
) BY_KEY;
CREATE INDEX lfs_uploads_created_at ON lfs_uploads (created_at, blob);

-- File locks of the LFS locking API.
CREATE TABLE lfs_locks (
  id         AUTO_ID,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  user_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  path       TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX lfs_locks_project_id_path ON lfs_locks (project_id, path);
CREATE INDEX lfs_locks_project_id ON lfs_locks (project_id, id);
CREATE INDEX lfs_locks_user_id ON lfs_locks (user_id);
