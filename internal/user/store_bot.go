package user

import (
	"context"
	"time"

	"svc/internal/db"
)

func (o BotOf) where(w *db.Where) {
	if o.ProjectID != nil {
		w.And("b.project_id = ?", *o.ProjectID)
		return
	}
	w.And("b.namespace_id = ?", o.NamespaceID)
}

const (
	botTokenColumns = tokenColumns + `, b.access_level`
	botTokenTables  = `access_tokens t JOIN bots b ON b.user_id = t.user_id`
)

func scanBotToken(s db.Scanner) (BotToken, error) {
	var t BotToken
	err := scanTokenInto(s, &t.Token, &t.Level)
	return t, err
}

// workingToken selects the active access tokens of a bot user for its project or
// group. Its other tokens do not count, because managers of the project or group
// can neither see nor revoke them.
const workingToken = `SELECT 1 FROM access_tokens t WHERE t.user_id = bots.user_id AND t.kind = 'bot' AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > ?)`

func insertBot(ctx context.Context, q db.Q, userID int64, of BotOf, level int64) error {
	_, err := q.ExecContext(ctx, `INSERT INTO bots (user_id, project_id, namespace_id, access_level) VALUES (?, ?, ?, ?)`,
		userID, of.ProjectID, of.NamespaceID, level)
	return err
}

func listBotTokens(ctx context.Context, d *db.DB, of BotOf, f TokenFilter, now time.Time, p db.Paging) (db.Page[BotToken], error) {
	where := f.where(OfBot, now)
	of.where(&where)
	return db.List(ctx, d, db.Query[BotToken]{
		Columns: botTokenColumns, From: botTokenTables, Where: where, Order: f.Sort.columns(), Desc: f.Sort.Desc, Scan: scanBotToken,
	}, p)
}

func findBotToken(ctx context.Context, q db.Q, of BotOf, id int64) (BotToken, error) {
	var where db.Where
	where.And("t.id = ? AND t.kind = ?", id, string(OfBot))
	of.where(&where)
	return scanBotToken(q.QueryRowContext(ctx, `SELECT `+botTokenColumns+` FROM `+botTokenTables+where.SQL(), where.Args()...))
}

// idleBots returns bot users without an active token that are not retired.
func idleBots(ctx context.Context, q db.Q, today string, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT user_id FROM bots WHERE retired_at IS NULL AND NOT EXISTS (`+workingToken+`) ORDER BY user_id LIMIT ?`, today, limit)
}

// retireBot returns false if the bot user has an active token or is retired
// already.
func retireBot(ctx context.Context, q db.Q, userID int64, now time.Time, today string) (bool, error) {
	return db.ExecAny(ctx, q, `
		UPDATE bots SET retired_at = ? WHERE user_id = ? AND retired_at IS NULL AND NOT EXISTS (`+workingToken+`)`, now, userID, today)
}

// retiredBots returns bot users that were retired before a time and whose accounts
// are not being deleted.
func retiredBots(ctx context.Context, q db.Q, before time.Time, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT b.user_id FROM bots b JOIN users u ON u.id = b.user_id
		WHERE b.retired_at < ? AND u.deleted_at IS NULL ORDER BY b.retired_at LIMIT ?`, before, limit)
}
