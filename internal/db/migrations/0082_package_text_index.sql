-- +goose Up
-- oldest: 0060

-- A text index of the names of packages.
CREATE VIRTUAL TABLE packages_text USING fts5(name, content = 'packages', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO packages_text (packages_text) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER packages_text_insert AFTER INSERT ON packages BEGIN
  INSERT INTO packages_text (rowid, name) VALUES (new.id, new.name);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER packages_text_update AFTER UPDATE OF name ON packages WHEN old.name <> new.name BEGIN
  INSERT INTO packages_text (packages_text, rowid, name) VALUES ('delete', old.id, old.name);
  INSERT INTO packages_text (rowid, name) VALUES (new.id, new.name);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER packages_text_delete AFTER DELETE ON packages BEGIN
  INSERT INTO packages_text (packages_text, rowid, name) VALUES ('delete', old.id, old.name);
END;
-- +goose StatementEnd
