package transfer_test

import (
	"sync"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/transfer"
	"svc/internal/waittest"
)

// TestBulkCancelAtEnd cancels an import while its project becomes visible. Both lock
// the import first: on PostgreSQL the one that waits for it holds nothing that the
// other one needs.
func TestBulkCancelAtEnd(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st, ctx := newFixture(t, s), t.Context()
		st.buildProject("from", 1)
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`})
		b, e := st.bulk(newProxy(t, s), "alice/from", "late")
		must(0, s.Transfer.RunBulkImport(ctx, transfer.BulkImportWork{EntityID: e.ID}))(t)
		file := must(st.Transfer.ProjectImports(ctx, st.by, db.Paging{Limit: 1}))(t).Items[0]
		var both sync.WaitGroup
		cancel := func() {
			if _, err := st.Transfer.CancelBulkImport(ctx, st.by, b.ID); err != nil && !errs.Is(err, errs.KindConflict) {
				t.Error(err)
			}
		}
		finish := func() {
			if err := st.Transfer.RunProjectImport(ctx, transfer.ProjectImportWork{ImportID: file.ID}); err != nil {
				t.Error(err)
			}
		}
		if s.DB.Postgres() {
			waits := func(n int) func() bool {
				return func() bool {
					var found int
					must(0, s.DB.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&found))(t)
					return found == n
				}
			}
			must(0, s.DB.Tx(ctx, func(tx *db.Tx) error {
				if err := tx.Lock(ctx, "bulk_import_entities", e.ID); err != nil {
					return err
				}
				both.Go(cancel)
				waittest.For(t, "the cancellation has locked the import", waits(1))
				both.Go(finish)
				waittest.For(t, "the end of the import is there", waits(2))
				for _, row := range []struct {
					table string
					id    int64
				}{{"projects", file.ProjectID()}, {"project_file_imports", file.ID}} {
					var free int
					if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM `+row.table+` WHERE id = ? FOR UPDATE SKIP LOCKED) free`, row.id).Scan(&free); err != nil {
						return err
					}
					if free != 1 {
						t.Errorf("the end of the import waits for the import, and has locked its row of %s", row.table)
					}
				}
				return nil
			}))(t)
		} else {
			both.Go(cancel)
			both.Go(finish)
		}
		both.Wait()
		_, err := s.Projects.Get(ctx, st.by, "alice/late")
		now := must(st.Transfer.BulkImport(ctx, st.by, b.ID))(t)
		switch {
		case now.State == transfer.Canceled && errs.Is(err, errs.KindNotFound):
		case now.State == transfer.Finished && err == nil && !s.DB.Postgres():
		default:
			t.Errorf("the import is %s, its project %v", now.State, err)
		}
	})
}
