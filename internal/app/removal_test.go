package app_test

import (
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
)

// removal is a background job that removes objects, with one of its kinds.
type removal struct {
	kind string
	Keys []string `json:"keys"`
}

func (r removal) Kind() string { return r.kind }

// TestRemovals adds the jobs that remove objects with all kinds of earlier releases,
// and checks that they are executed.
func TestRemovals(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	for _, kind := range []string{"blob_remove", "plan_drop_uploads", "alert_drop_images", "terraform_drop_files", "secure_file_drop"} {
		key := "test/" + kind
		if _, err := s.Blobs.Put(t.Context(), key, strings.NewReader("x"), blob.Options{}); err != nil {
			t.Fatal(err)
		}
		err := s.DB.Tx(t.Context(), func(tx *db.Tx) error {
			return s.Queue.Add(t.Context(), tx, removal{kind, []string{key}})
		})
		if err != nil {
			t.Fatal(kind, err)
		}
		s.Settled(t)
		if _, err := s.Blobs.Stat(t.Context(), key); !errs.Is(err, errs.KindNotFound) {
			t.Errorf("%s: the object is still there: %v", kind, err)
		}
	}
}
