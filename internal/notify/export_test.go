package notify

import (
	"context"

	"svc/internal/db"
)

// Work does what waits in the queue for letters, in the order of a good day:
// first who is told of what happened after an act is found out, then letters are
// sent. It gives the last act, and what the sending of each letter came to.
func (s *Service) Work(ctx context.Context, after int64) (last int64, came []error, err error) {
	acts, err := db.All(ctx, s.DB, db.Value[int64], `SELECT id FROM notification_acts WHERE id > ? ORDER BY id`, after)
	if err != nil {
		return after, nil, err
	}
	for _, id := range acts {
		if err := s.address(ctx, addressing{ActID: id}); err != nil {
			return after, nil, err
		}
		after = id
	}
	letters, err := db.All(ctx, s.DB, db.Value[int64], `SELECT id FROM notification_letters WHERE state IN ('waiting', 'closed', 'sending') ORDER BY id`)
	for _, id := range letters {
		came = append(came, s.deliver(ctx, delivery{LetterID: id}))
	}
	return after, came, err
}
