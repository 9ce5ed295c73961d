package project

import (
	"context"
	"maps"
	"slices"

	"svc/internal/actor"
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

// countOtherAttributes counts the attributes with other keys.
func countOtherAttributes(ctx context.Context, q db.Q, in noted, key string) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM `+in.table+` WHERE `+in.column+` = ? AND key <> ?`, in.id, key).Scan(&n)
	return n, err
}

func readAttributes(ctx context.Context, q db.Q, in attributeTable, ids []int64, into map[int64][]Attribute) error {
	_, err := db.All(ctx, q, func(sc db.Scanner) (struct{}, error) {
		var id int64
		var a Attribute
		err := sc.Scan(&id, &a.Key, &a.Value)
		into[id] = append(into[id], a)
		return struct{}{}, err
	}, `SELECT `+in.column+`, key, value FROM `+in.table+` WHERE `+in.column+` IN `+db.In(len(ids))+` ORDER BY `+in.column+`, key`, db.Any(ids)...)
	return err
}

// having adds the condition that an object has all these attributes. It is ignored
// if the actor is not an administrator.
func (in attributeTable) having(w *db.Where, by actor.Actor, column string, attributes map[string]string) {
	if !by.Admin {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		w.And(column+` IN (SELECT a.`+in.column+` FROM `+in.table+` a WHERE a.key = ? AND a.value = ?)`, key, attributes[key])
	}
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
