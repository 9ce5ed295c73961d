package user

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"svc/internal/actor"
)

// TestFindByEmails checks that only confirmed addresses are found.
func TestFindByEmails(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, _ := b.user("ada")
		b.user("bob")
		_, err := b.AddEmail(ctx, actor.System(), ada.ID, NewEmail{Address: "Ada@Work.example", SkipConfirmation: true})
		b.ok(err)
		_, err = b.AddEmail(ctx, actor.System(), ada.ID, NewEmail{Address: "claimed@work.example"})
		b.ok(err)
		ask := []string{"ADA@example.com", "ada@work.example", "claimed@work.example", "bob@example.com", "", "nobody@example.com"}
		for i := range 1200 { // more than one batch
			ask = append(ask, fmt.Sprintf("%d@example.com", i))
		}
		found, err := b.FindByEmails(ctx, ask)
		b.ok(err)
		got := map[string]string{}
		for address, u := range found {
			got[address] = u.Username
		}
		want := map[string]string{"ada@example.com": "ada", "ada@work.example": "ada", "bob@example.com": "bob"}
		if diff := cmp.Diff(want, got); diff != "" {
			b.t.Error(diff)
		}
		if found, err := b.FindByEmails(ctx, nil); err != nil || len(found) != 0 {
			b.t.Errorf("%v, %v", found, err)
		}
	})
}
