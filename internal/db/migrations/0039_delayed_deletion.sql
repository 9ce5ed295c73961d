-- +goose Up

-- Projects and groups that are marked for deletion: hidden (deleted_at), and
-- deleted permanently after deletion_adjourned_period days, unless they are
-- restored. What is hidden with a group has the ID of that group.
ALTER TABLE projects ADD COLUMN marked_for_deletion_at BIGINT;
ALTER TABLE projects ADD COLUMN deletion_group_id BIGINT;
ALTER TABLE namespaces ADD COLUMN marked_for_deletion_at BIGINT;
ALTER TABLE namespaces ADD COLUMN deletion_group_id BIGINT;

CREATE INDEX projects_marked_for_deletion_at ON projects (marked_for_deletion_at, id) WHERE marked_for_deletion_at IS NOT NULL;
CREATE INDEX projects_deletion_group_id ON projects (deletion_group_id) WHERE deletion_group_id IS NOT NULL;
CREATE INDEX namespaces_marked_for_deletion_at ON namespaces (marked_for_deletion_at, id) WHERE marked_for_deletion_at IS NOT NULL;
CREATE INDEX namespaces_deletion_group_id ON namespaces (deletion_group_id) WHERE deletion_group_id IS NOT NULL;

-- Administrators look up deploy keys by their MD5 fingerprint too.
CREATE INDEX deploy_keys_fingerprint ON deploy_keys (fingerprint);
