-- +goose Up

-- Text indexes of what can be searched, by sequences of three characters. They have no
-- copy of the text, and triggers keep them in the transaction of each change.

CREATE VIRTUAL TABLE issues_text USING fts5(title, description, content = 'issues', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO issues_text (issues_text) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER issues_text_insert AFTER INSERT ON issues BEGIN
  INSERT INTO issues_text (rowid, title, description) VALUES (new.id, new.title, new.description);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER issues_text_update AFTER UPDATE OF title, description ON issues WHEN old.title <> new.title OR old.description <> new.description BEGIN
  INSERT INTO issues_text (issues_text, rowid, title, description) VALUES ('delete', old.id, old.title, old.description);
  INSERT INTO issues_text (rowid, title, description) VALUES (new.id, new.title, new.description);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER issues_text_delete AFTER DELETE ON issues BEGIN
  INSERT INTO issues_text (issues_text, rowid, title, description) VALUES ('delete', old.id, old.title, old.description);
END;
-- +goose StatementEnd

CREATE VIRTUAL TABLE merge_requests_text USING fts5(title, description, content = 'merge_requests', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO merge_requests_text (merge_requests_text) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER merge_requests_text_insert AFTER INSERT ON merge_requests BEGIN
  INSERT INTO merge_requests_text (rowid, title, description) VALUES (new.id, new.title, new.description);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER merge_requests_text_update AFTER UPDATE OF title, description ON merge_requests WHEN old.title <> new.title OR old.description <> new.description BEGIN
  INSERT INTO merge_requests_text (merge_requests_text, rowid, title, description) VALUES ('delete', old.id, old.title, old.description);
  INSERT INTO merge_requests_text (rowid, title, description) VALUES (new.id, new.title, new.description);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER merge_requests_text_delete AFTER DELETE ON merge_requests BEGIN
  INSERT INTO merge_requests_text (merge_requests_text, rowid, title, description) VALUES ('delete', old.id, old.title, old.description);
END;
-- +goose StatementEnd

CREATE VIRTUAL TABLE notes_text USING fts5(body, content = 'notes', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO notes_text (notes_text) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER notes_text_insert AFTER INSERT ON notes BEGIN
  INSERT INTO notes_text (rowid, body) VALUES (new.id, new.body);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER notes_text_update AFTER UPDATE OF body ON notes WHEN old.body <> new.body BEGIN
  INSERT INTO notes_text (notes_text, rowid, body) VALUES ('delete', old.id, old.body);
  INSERT INTO notes_text (rowid, body) VALUES (new.id, new.body);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER notes_text_delete AFTER DELETE ON notes BEGIN
  INSERT INTO notes_text (notes_text, rowid, body) VALUES ('delete', old.id, old.body);
END;
-- +goose StatementEnd

CREATE VIRTUAL TABLE milestones_text USING fts5(title, description, content = 'milestones', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO milestones_text (milestones_text) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER milestones_text_insert AFTER INSERT ON milestones BEGIN
  INSERT INTO milestones_text (rowid, title, description) VALUES (new.id, new.title, new.description);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER milestones_text_update AFTER UPDATE OF title, description ON milestones WHEN old.title <> new.title OR old.description <> new.description BEGIN
  INSERT INTO milestones_text (milestones_text, rowid, title, description) VALUES ('delete', old.id, old.title, old.description);
  INSERT INTO milestones_text (rowid, title, description) VALUES (new.id, new.title, new.description);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER milestones_text_delete AFTER DELETE ON milestones BEGIN
  INSERT INTO milestones_text (milestones_text, rowid, title, description) VALUES ('delete', old.id, old.title, old.description);
END;
-- +goose StatementEnd

CREATE VIRTUAL TABLE projects_text USING fts5(name, path, full_path, description, content = 'projects', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO projects_text (projects_text) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER projects_text_insert AFTER INSERT ON projects BEGIN
  INSERT INTO projects_text (rowid, name, path, full_path, description) VALUES (new.id, new.name, new.path, new.full_path, new.description);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER projects_text_update AFTER UPDATE OF name, path, full_path, description ON projects WHEN old.name <> new.name OR old.path <> new.path OR old.full_path <> new.full_path OR old.description <> new.description BEGIN
  INSERT INTO projects_text (projects_text, rowid, name, path, full_path, description) VALUES ('delete', old.id, old.name, old.path, old.full_path, old.description);
  INSERT INTO projects_text (rowid, name, path, full_path, description) VALUES (new.id, new.name, new.path, new.full_path, new.description);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER projects_text_delete AFTER DELETE ON projects BEGIN
  INSERT INTO projects_text (projects_text, rowid, name, path, full_path, description) VALUES ('delete', old.id, old.name, old.path, old.full_path, old.description);
END;
-- +goose StatementEnd

CREATE VIRTUAL TABLE snippets_text USING fts5(title, content = 'snippets', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO snippets_text (snippets_text) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER snippets_text_insert AFTER INSERT ON snippets BEGIN
  INSERT INTO snippets_text (rowid, title) VALUES (new.id, new.title);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER snippets_text_update AFTER UPDATE OF title ON snippets WHEN old.title <> new.title BEGIN
  INSERT INTO snippets_text (snippets_text, rowid, title) VALUES ('delete', old.id, old.title);
  INSERT INTO snippets_text (rowid, title) VALUES (new.id, new.title);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER snippets_text_delete AFTER DELETE ON snippets BEGIN
  INSERT INTO snippets_text (snippets_text, rowid, title) VALUES ('delete', old.id, old.title);
END;
-- +goose StatementEnd

CREATE VIRTUAL TABLE users_text USING fts5(name, username, content = 'users', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO users_text (users_text) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER users_text_insert AFTER INSERT ON users BEGIN
  INSERT INTO users_text (rowid, name, username) VALUES (new.id, new.name, new.username);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER users_text_update AFTER UPDATE OF name, username ON users WHEN old.name <> new.name OR old.username <> new.username BEGIN
  INSERT INTO users_text (users_text, rowid, name, username) VALUES ('delete', old.id, old.name, old.username);
  INSERT INTO users_text (rowid, name, username) VALUES (new.id, new.name, new.username);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER users_text_delete AFTER DELETE ON users BEGIN
  INSERT INTO users_text (users_text, rowid, name, username) VALUES ('delete', old.id, old.name, old.username);
END;
-- +goose StatementEnd
