package user

import (
	"context"
	"encoding/json"
	"fmt"

	"svc/internal/db"
)

// Scan implements sql.Scanner. The column is JSON, or empty for the defaults.
func (a *Appearance) Scan(value any) error {
	*a = Appearance{}
	switch text := value.(type) {
	case nil:
		return nil
	case string:
		if text == "" {
			return nil
		}
		return json.Unmarshal([]byte(text), a)
	case []byte:
		if len(text) == 0 {
			return nil
		}
		return json.Unmarshal(text, a)
	}
	return fmt.Errorf("preferences are a %T", value)
}

// text returns the value of the column.
func (a Appearance) text() string {
	if a == (Appearance{}) {
		return ""
	}
	text, err := json.Marshal(a)
	if err != nil {
		return "" // marshaling these types cannot fail
	}
	return string(text)
}

func insertSignIn(ctx context.Context, tx *db.Tx, s *Session) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO sign_ins (user_id, ip, user_agent, created_at) VALUES (?, ?, ?, ?)`, s.UserID, s.IP, s.UserAgent, s.CreatedAt)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		DELETE FROM sign_ins WHERE user_id = ? AND id < (SELECT min(x.id) FROM (SELECT id FROM sign_ins WHERE user_id = ? ORDER BY id DESC LIMIT ?) AS x)`,
		s.UserID, s.UserID, maxSignIns)
	return err
}

func listSignIns(ctx context.Context, q db.Q, userID int64) ([]SignIn, error) {
	return db.All(ctx, q, func(s db.Scanner) (one SignIn, err error) {
		err = s.Scan(&one.IP, &one.UserAgent, db.Time(&one.At))
		return one, err
	}, `SELECT ip, user_agent, created_at FROM sign_ins WHERE user_id = ? ORDER BY id DESC LIMIT ?`, userID, maxSignIns)
}
