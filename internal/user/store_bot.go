package user

import "svc/internal/db"

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

// workingToken finds an access token of the group or project, of a row of bots,
// that works on a day. Other tokens of the bot do not count: those who manage
// the group or project cannot see or revoke them.
const workingToken = `SELECT 1 FROM access_tokens t WHERE t.user_id = bots.user_id AND t.kind = 'bot' AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > ?)`

func scanID(s db.Scanner) (id int64, err error) { return id, s.Scan(&id) }
