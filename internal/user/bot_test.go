package user

import (
	"slices"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
)

// TestBotLife checks that a bot user without active tokens is retired once, and that
// its account and tokens are deleted weeks later.
func TestBotLife(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, byAda := b.user("ada")
		token, err := b.NewBotToken(ctx, NewToken{Name: "deploy", Scopes: []string{"api", "read_repository"}})
		b.ok(err)
		of := BotOf{NamespaceID: &ada.NamespaceID}
		var u *User
		b.ok(b.DB.Tx(ctx, func(tx *db.Tx) (err error) {
			u, err = b.AddBot(ctx, tx, byAda, NewBot{Of: of, Username: "group_1_bot_x", Email: "group_1_bot_x@noreply.example.com", Level: 30}, token)
			return err
		}))
		if u.Kind != GroupBot || u.Name != "deploy" || !b.again(u).Bot() || b.again(u).ProjectsLimit != 0 || b.again(u).CanCreateGroup {
			b.t.Errorf("%+v", b.again(u))
		}
		by, err := b.Authenticate(ctx, token.Secret, "")
		b.ok(err)
		if by.ID != u.ID || !slices.Equal(by.Scopes, []string{"api", "read_repository"}) {
			b.t.Errorf("%+v", by)
		}
		// The token is not a personal one: it is only rotated by RotateBotToken.
		_, err = b.RotateSelfToken(ctx, by, "")
		b.refused(err, errs.KindNotAllowed)
		_, err = b.Token(ctx, by, token.ID)
		b.refused(err, errs.KindNotFound)
		page, err := b.Tokens(ctx, by, TokenFilter{}, db.Paging{Limit: 20})
		b.ok(err)
		if len(page.Items) != 0 {
			b.t.Errorf("personal tokens of a bot: %+v", page.Items)
		}
		for _, scope := range []string{"sudo", "admin_mode", "read_user", "openid"} {
			_, err := b.NewBotToken(ctx, NewToken{Name: "x", Scopes: []string{scope}})
			b.wrong(err, "scopes", "can only contain available scopes")
		}

		retire := func() (retired bool) {
			b.t.Helper()
			b.ok(b.DB.Tx(ctx, func(tx *db.Tx) (err error) {
				retired, err = b.RetireBot(ctx, tx, u.ID)
				return err
			}))
			return retired
		}
		idle := func() []int64 {
			b.t.Helper()
			list, err := b.IdleBots(ctx, b.DB, 10)
			b.ok(err)
			return list
		}
		if retire() || len(idle()) != 0 {
			b.t.Error("a bot whose token works is retired")
		}
		b.ok(b.RevokeSelfToken(ctx, by))
		if !slices.Equal(idle(), []int64{u.ID}) || !retire() || retire() || len(idle()) != 0 {
			b.t.Error("a bot without tokens is not retired, or twice")
		}
		b.clock.add(botDays*24*time.Hour - time.Second)
		b.ok(b.deleteBots(ctx))
		b.again(u)
		b.clock.add(2 * time.Second)
		b.ok(b.deleteBots(ctx))
		b.ok(b.deleteBots(ctx))
		_, err = findUser(ctx, b.DB, u.ID)
		b.refused(err, errs.KindNotFound)
		if b.count("user_deleted") != 1 {
			b.t.Errorf("recorded %d times", b.count("user_deleted"))
		}
	})
}
