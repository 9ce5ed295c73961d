// Package removal deletes objects in background jobs. A feature deletes the rows of
// objects and adds the job in one transaction, so that no row refers to a deleted
// object, and no object remains without a row.
package removal

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/queue"
)

// batch is the maximum number of objects of a job.
const batch = 500

// Add adds background jobs that delete objects.
func Add(ctx context.Context, q *queue.Queue, tx *db.Tx, keys ...string) error {
	for part := range slices.Chunk(keys, batch) {
		if err := q.Add(ctx, tx, objects{Keys: part}); err != nil {
			return err
		}
	}
	return nil
}

// Handle registers the background job for the objects of a store.
func Handle(q *queue.Queue, s blob.Store) {
	remove := func(ctx context.Context, o objects) error {
		for _, key := range o.Keys {
			if err := s.Delete(ctx, key); err != nil {
				return fmt.Errorf("remove %s: %w", key, err)
			}
		}
		return nil
	}
	queue.Handle(q, remove)
	queue.Handle(q, func(ctx context.Context, w uploads) error { return remove(ctx, w.objects) })
	queue.Handle(q, func(ctx context.Context, w images) error { return remove(ctx, w.objects) })
	queue.Handle(q, func(ctx context.Context, w states) error { return remove(ctx, w.objects) })
	queue.Handle(q, func(ctx context.Context, w secureFiles) error { return remove(ctx, w.objects) })
}

// objects is the background job that deletes objects whose rows were deleted.
type objects struct {
	Keys []string `json:"keys"`
}

// Kind implements queue.Work.
func (objects) Kind() string { return "blob_remove" }

// The job kinds of previous releases. Jobs that were added before an upgrade, or by
// a node with a previous release, still have these kinds.
type (
	uploads     struct{ objects }
	images      struct{ objects }
	states      struct{ objects }
	secureFiles struct{ objects }
)

// Kind implements queue.Work.
func (uploads) Kind() string { return "plan_drop_uploads" }

// Kind implements queue.Work.
func (images) Kind() string { return "alert_drop_images" }

// Kind implements queue.Work.
func (states) Kind() string { return "terraform_drop_files" }

// Kind implements queue.Work.
func (secureFiles) Kind() string { return "secure_file_drop" }
