package merge

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/plan/diffnote"
	"svc/internal/project"
)

// maxViewed is the maximum number of files of a merge request that a user can mark
// as viewed.
const maxViewed = 10_000

// Viewed has the files of a merge request that a user has marked as viewed: their
// content at that time, by diffnote.FileCode.
type Viewed map[string]string

// Has reports whether the user has viewed a file in its current state. A file that a
// push changes counts as not viewed again.
func (v Viewed) Has(f git.FileDiff) bool { return v[diffnote.FileCode(f.NewPath)] == content(f) }

// content identifies the old and new content of a file in a diff.
func content(f git.FileDiff) string { return string(f.OldID) + ":" + string(f.NewID) + ":" + f.BMode }

// Viewed returns the files of a merge request that the actor has marked as viewed;
// none for anonymous users. NotFound.
func (s *Service) Viewed(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (Viewed, error) {
	if by.RequireUser() != nil {
		return nil, nil
	}
	_, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	found, err := findViewed(ctx, s.DB, m.ID, by.ID)
	if err != nil {
		return nil, fmt.Errorf("viewed files of merge request %d: %w", m.ID, err)
	}
	return found, nil
}

// SetViewed marks a file of a version as viewed or not viewed by the actor. Requires
// a signed-in user who can see the merge request. file is a diffnote.FileCode.
// NotFound; Invalid for too many files.
func (s *Service) SetViewed(ctx context.Context, by actor.Actor, ref project.Ref, iid, versionID int64, file string, viewed bool) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	// The content of the files is not needed: without it the diff is cheap to compute.
	c, err := s.Contents(ctx, by, ref, iid, Part{VersionID: versionID, Diff: true, Options: git.DiffOptions{MaxFiles: 1, MaxLines: 1}})
	if err != nil {
		return err
	}
	for _, f := range c.Diff.Files {
		if diffnote.FileCode(f.NewPath) != file {
			continue
		}
		if err := s.saveViewed(ctx, c.Request.ID, by.ID, file, content(f), viewed); err != nil {
			return fmt.Errorf("viewed file of merge request %d: %w", c.Request.ID, err)
		}
		return nil
	}
	return errs.NotFound("File")
}

func (s *Service) saveViewed(ctx context.Context, requestID, userID int64, file, content string, viewed bool) error {
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if !viewed {
			return deleteViewed(ctx, tx, requestID, userID, file)
		}
		n, err := countViewed(ctx, tx, requestID, userID)
		if err != nil {
			return err
		}
		if n >= maxViewed {
			return errs.Invalid("Too many files are marked as viewed.")
		}
		return insertViewed(ctx, tx, requestID, userID, file, content)
	})
}
