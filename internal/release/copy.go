package release

import (
	"context"

	"svc/internal/db"
)

// PutLink inserts a link of a release of an imported project. Invalid; Conflict.
func PutLink(ctx context.Context, tx *db.Tx, l *Link) error {
	if err := l.apply(LinkFields{}); err != nil {
		return err
	}
	return insertLink(ctx, tx, l)
}
