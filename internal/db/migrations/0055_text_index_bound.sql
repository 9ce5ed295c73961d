-- +goose Up
-- oldest: 0053

-- The text indexes have the first 65,536 characters of a description or a comment: a change
-- takes time in proportion to them, and on SQLite all other writers wait for it.

DROP TABLE issues_text;
DROP TRIGGER issues_text_insert;
DROP TRIGGER issues_text_update;
DROP TRIGGER issues_text_delete;
CREATE VIEW issues_text_source AS SELECT id, title, substr(description, 1, 65536) AS description FROM issues;
CREATE VIRTUAL TABLE issues_text USING fts5(title, description, content = 'issues_text_source', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO issues_text (issues_text) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER issues_text_insert AFTER INSERT ON issues BEGIN
  INSERT INTO issues_text (rowid, title, description) VALUES (new.id, new.title, substr(new.description, 1, 65536));
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER issues_text_update AFTER UPDATE OF title, description ON issues WHEN old.title <> new.title OR old.description <> new.description BEGIN
  INSERT INTO issues_text (issues_text, rowid, title, description) VALUES ('delete', old.id, old.title, substr(old.description, 1, 65536));
  INSERT INTO issues_text (rowid, title, description) VALUES (new.id, new.title, substr(new.description, 1, 65536));
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER issues_text_delete AFTER DELETE ON issues BEGIN
  INSERT INTO issues_text (issues_text, rowid, title, description) VALUES ('delete', old.id, old.title, substr(old.description, 1, 65536));
END;
-- +goose StatementEnd

DROP TABLE merge_requests_text;
DROP TRIGGER merge_requests_text_insert;
DROP TRIGGER merge_requests_text_update;
DROP TRIGGER merge_requests_text_delete;
CREATE VIEW merge_requests_text_source AS SELECT id, title, substr(description, 1, 65536) AS description FROM merge_requests;
CREATE VIRTUAL TABLE merge_requests_text USING fts5(title, description, content = 'merge_requests_text_source', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO merge_requests_text (merge_requests_text) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER merge_requests_text_insert AFTER INSERT ON merge_requests BEGIN
  INSERT INTO merge_requests_text (rowid, title, description) VALUES (new.id, new.title, substr(new.description, 1, 65536));
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER merge_requests_text_update AFTER UPDATE OF title, description ON merge_requests WHEN old.title <> new.title OR old.description <> new.description BEGIN
  INSERT INTO merge_requests_text (merge_requests_text, rowid, title, description) VALUES ('delete', old.id, old.title, substr(old.description, 1, 65536));
  INSERT INTO merge_requests_text (rowid, title, description) VALUES (new.id, new.title, substr(new.description, 1, 65536));
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER merge_requests_text_delete AFTER DELETE ON merge_requests BEGIN
  INSERT INTO merge_requests_text (merge_requests_text, rowid, title, description) VALUES ('delete', old.id, old.title, substr(old.description, 1, 65536));
END;
-- +goose StatementEnd

DROP TABLE notes_text;
DROP TRIGGER notes_text_insert;
DROP TRIGGER notes_text_update;
DROP TRIGGER notes_text_delete;
CREATE VIEW notes_text_source AS SELECT id, substr(body, 1, 65536) AS body FROM notes;
CREATE VIRTUAL TABLE notes_text USING fts5(body, content = 'notes_text_source', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO notes_text (notes_text) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER notes_text_insert AFTER INSERT ON notes BEGIN
  INSERT INTO notes_text (rowid, body) VALUES (new.id, substr(new.body, 1, 65536));
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER notes_text_update AFTER UPDATE OF body ON notes WHEN old.body <> new.body BEGIN
  INSERT INTO notes_text (notes_text, rowid, body) VALUES ('delete', old.id, substr(old.body, 1, 65536));
  INSERT INTO notes_text (rowid, body) VALUES (new.id, substr(new.body, 1, 65536));
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER notes_text_delete AFTER DELETE ON notes BEGIN
  INSERT INTO notes_text (notes_text, rowid, body) VALUES ('delete', old.id, substr(old.body, 1, 65536));
END;
-- +goose StatementEnd

DROP TABLE milestones_text;
DROP TRIGGER milestones_text_insert;
DROP TRIGGER milestones_text_update;
DROP TRIGGER milestones_text_delete;
CREATE VIEW milestones_text_source AS SELECT id, title, substr(description, 1, 65536) AS description FROM milestones;
CREATE VIRTUAL TABLE milestones_text USING fts5(title, description, content = 'milestones_text_source', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO milestones_text (milestones_text) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER milestones_text_insert AFTER INSERT ON milestones BEGIN
  INSERT INTO milestones_text (rowid, title, description) VALUES (new.id, new.title, substr(new.description, 1, 65536));
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER milestones_text_update AFTER UPDATE OF title, description ON milestones WHEN old.title <> new.title OR old.description <> new.description BEGIN
  INSERT INTO milestones_text (milestones_text, rowid, title, description) VALUES ('delete', old.id, old.title, substr(old.description, 1, 65536));
  INSERT INTO milestones_text (rowid, title, description) VALUES (new.id, new.title, substr(new.description, 1, 65536));
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER milestones_text_delete AFTER DELETE ON milestones BEGIN
  INSERT INTO milestones_text (milestones_text, rowid, title, description) VALUES ('delete', old.id, old.title, substr(old.description, 1, 65536));
END;
-- +goose StatementEnd
