package project

import (
	"context"

	"svc/internal/db"
)

// attributeTable is the table of custom attributes of projects or groups.
type attributeTable struct{ table, column, event string }

var (
	projectAttributes = attributeTable{"project_custom_attributes", "project_id", "project_custom_attribute"}
	groupAttributes   = attributeTable{"group_custom_attributes", "namespace_id", "group_custom_attribute"}
)

func scanAttribute(sc db.Scanner) (Attribute, error) {
	var a Attribute
	err := sc.Scan(&a.Key, &a.Value)
	return a, err
}

func listAttributes(ctx context.Context, q db.Q, in noted) ([]Attribute, error) {
	return db.All(ctx, q, scanAttribute, `SELECT key, value FROM `+in.table+` WHERE `+in.column+` = ? ORDER BY key`, in.id)
}

func findAttribute(ctx context.Context, q db.Q, in noted, key string) (Attribute, error) {
	return scanAttribute(q.QueryRowContext(ctx, `SELECT key, value FROM `+in.table+` WHERE `+in.column+` = ? AND key = ?`, in.id, key))
}

func countAttributes(ctx context.Context, q db.Q, in noted) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM `+in.table+` WHERE `+in.column+` = ?`, in.id).Scan(&n)
	return n, err
}

func saveAttribute(ctx context.Context, q db.Q, in noted, a Attribute) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO `+in.table+` (`+in.column+`, key, value) VALUES (?, ?, ?)
		ON CONFLICT (`+in.column+`, key) DO UPDATE SET value = excluded.value`, in.id, a.Key, a.Value)
	return err
}

func deleteAttribute(ctx context.Context, q db.Q, in noted, key string) error {
	return db.ExecOne(ctx, q, `DELETE FROM `+in.table+` WHERE `+in.column+` = ? AND key = ?`, in.id, key)
}
