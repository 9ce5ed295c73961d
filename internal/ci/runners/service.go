// Package runners implements the runners of the instance, of groups and of
// projects: their tokens, settings and runner managers. Package ci assigns jobs
// to them. The program that executes jobs is in internal/runner.
package runners

import (
	"context"
	"time"

	"svc/internal/db"
	"svc/internal/notice"
	"svc/internal/project"
	"svc/internal/secret"
	"svc/internal/setting"
	"svc/internal/user"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Keys     *secret.Keyring
	Notices  *notice.Bus
	Settings *setting.Service
	Users    *user.Service
	Projects *project.Service
	Now      func() time.Time
}

// Service manages runners.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{d} }

// ProjectsDeleted deletes the project runners that have no other project.
func ProjectsDeleted(ctx context.Context, tx *db.Tx, gone []project.Deleted) error {
	for _, p := range gone {
		if err := deleteOfProject(ctx, tx, p.ID); err != nil {
			return err
		}
	}
	return nil
}
