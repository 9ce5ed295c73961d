package release

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/event"
	"svc/internal/git"
	"svc/internal/patch"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/repo"
)

// Fields are changes to a release; nil leaves the default or the current value.
type Fields struct {
	Name         *string
	Description  *string
	ReleasedAt   *time.Time
	Milestones   *[]string // titles
	MilestoneIDs *[]int64
}

func (f Fields) empty() bool { return f == Fields{} }

// NewRelease has the fields of a new release.
type NewRelease struct {
	Fields
	Tag        string
	TagMessage string // of a new tag
	Ref        string // what a new tag is created from
	Links      []LinkFields
}

// Create creates a release for a tag, and the tag if it does not exist. Developers
// and above may; for a protected tag, those who may create it. Conflict if the tag
// has a release; Unprocessable if there is no tag and no ref to create it from;
// Invalid; Forbidden; NotFound.
func (s *Service) Create(ctx context.Context, by actor.Actor, ref project.Ref, n NewRelease) (*project.Project, *Release, error) {
	p, err := s.changeable(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	if git.CheckRef(git.Tags+n.Tag) != nil || strings.HasPrefix(n.Tag, "-") {
		return nil, nil, errs.Refused("Tag name invalid")
	}
	if err := s.checkTag(ctx, by, p, n.Tag); err != nil {
		return nil, nil, err
	}
	if _, err := findRelease(ctx, s.DB, p.ID, n.Tag); err == nil {
		return nil, nil, errs.Conflict("Release already exists")
	} else if !errs.Is(db.NotFound(err, ""), errs.KindNotFound) {
		return nil, nil, fmt.Errorf("find release: %w", err)
	}
	now := s.Now()
	r := &Release{ProjectID: p.ID, Tag: n.Tag, Name: n.Tag, AuthorID: &by.ID, CreatedAt: now, UpdatedAt: now, ReleasedAt: now}
	if err := r.apply(n.Fields); err != nil {
		return nil, nil, err
	}
	links, err := newLinks(n.Links, now)
	if err != nil {
		return nil, nil, err
	}
	goals, err := s.milestones(ctx, p, n.Fields)
	if err != nil {
		return nil, nil, err
	}
	if r.SHA, err = s.tag(ctx, by, p, n); err != nil {
		return nil, nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertRelease(ctx, tx, r); err != nil {
			return err
		}
		for i := range links {
			links[i].ReleaseID = r.ID
			if err := insertLink(ctx, tx, &links[i]); err != nil {
				return err
			}
		}
		r.Links = links
		if err := saveMilestones(ctx, tx, r.ID, goals); err != nil {
			return err
		}
		if err := s.record(ctx, tx, by, p, r, "release_created", "Created release "+r.Tag); err != nil {
			return err
		}
		if err := s.notify(ctx, tx, by, r); err != nil {
			return err
		}
		return s.Events.Created.Publish(ctx, tx, Change{p, r, by})
	})
	if db.IsUnique(err, "releases_project_id_tag") {
		return nil, nil, errs.Conflict("Release already exists")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("create release: %w", err)
	}
	return p, r, s.fill(ctx, by, p, r)
}

// tag returns the commit of the tag of a new release. It creates the tag if it does
// not exist.
func (s *Service) tag(ctx context.Context, by actor.Actor, p *project.Project, n NewRelease) (string, error) {
	src, err := s.Repos.SourceOf(by, p)
	if err != nil {
		return "", err
	}
	found, err := src.Find(ctx, git.Tags+n.Tag)
	if errs.Is(err, errs.KindNotFound) {
		if n.Ref == "" {
			return "", errs.Unprocessable("Ref is not specified")
		}
		if _, _, err = s.Repos.CreateTag(ctx, by, project.RefTo(p.ID), repo.NewTag{Name: n.Tag, From: n.Ref, Message: n.TagMessage}); err != nil {
			return "", err
		}
		found, err = src.Find(ctx, git.Tags+n.Tag)
	}
	return string(found.Commit), err
}

func (r *Release) apply(f Fields) error {
	if f.Name != nil && strings.TrimSpace(*f.Name) != "" {
		r.Name = strings.TrimSpace(*f.Name)
	}
	patch.Set(&r.Description, f.Description)
	patch.Set(&r.ReleasedAt, f.ReleasedAt)
	wrong := errs.Fields{}
	if utf8.RuneCountInString(r.Name) > MaxName {
		wrong.Set("name", "is too long (maximum is %d characters)", MaxName)
	}
	if len(r.Description) > MaxDescription {
		wrong.Set("description", "is too long (maximum is %d characters)", MaxDescription)
	}
	return wrong.Err()
}

// milestones returns the IDs of the milestones of a change; nil keeps them.
func (s *Service) milestones(ctx context.Context, p *project.Project, f Fields) ([]int64, error) {
	if f.Milestones == nil && f.MilestoneIDs == nil {
		return nil, nil
	}
	ids := []int64{}
	if f.Milestones != nil && f.MilestoneIDs != nil {
		return nil, errs.Refused("milestones, milestone_ids are mutually exclusive")
	}
	var missing []string
	if f.Milestones != nil {
		if len(*f.Milestones) > MaxMilestones {
			return nil, errs.InvalidField("milestones", "are too many (maximum is %d)", MaxMilestones)
		}
		for _, title := range *f.Milestones {
			id, err := s.Plan.MilestoneTitled(ctx, p, title)
			if err != nil {
				return nil, err
			}
			if id == nil {
				missing = append(missing, title)
				continue
			}
			ids = append(ids, *id)
		}
		if len(missing) > 0 {
			return nil, errs.Refused("Milestone(s) not found: %s", strings.Join(missing, ", "))
		}
		return ids, nil
	}
	if len(*f.MilestoneIDs) > MaxMilestones {
		return nil, errs.InvalidField("milestone_ids", "are too many (maximum is %d)", MaxMilestones)
	}
	for _, id := range *f.MilestoneIDs {
		ok, err := s.Plan.UsableMilestone(ctx, plan.Owner{Project: p}, id)
		if err != nil {
			return nil, err
		}
		if !ok {
			missing = append(missing, fmt.Sprint(id))
			continue
		}
		ids = append(ids, id)
	}
	if len(missing) > 0 {
		return nil, errs.Refused("Milestone id(s) not found: %s", strings.Join(missing, ", "))
	}
	return ids, nil
}

// Update updates a release. The permissions are those of Create. NotFound; Invalid.
func (s *Service) Update(ctx context.Context, by actor.Actor, ref project.Ref, tag string, f Fields) (*project.Project, *Release, error) {
	p, err := s.existing(ctx, by, ref, tag)
	if err != nil {
		return nil, nil, err
	}
	if f.empty() {
		return nil, nil, errs.Refused("params is empty")
	}
	goals, err := s.milestones(ctx, p, f)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.change(ctx, by, p, tag, s.Events.Updated, "release_updated", "Updated release "+tag, func(tx *db.Tx, r *Release) error {
		if err := r.apply(f); err != nil {
			return err
		}
		r.UpdatedAt = s.Now()
		if err := saveRelease(ctx, tx, r); err != nil {
			return err
		}
		if goals == nil {
			return nil
		}
		return saveMilestones(ctx, tx, r.ID, goals)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("update release: %w", err)
	}
	return p, r, s.fill(ctx, by, p, r)
}

// Delete deletes a release with its links, and keeps the tag. The permissions are
// those of Create. NotFound.
func (s *Service) Delete(ctx context.Context, by actor.Actor, ref project.Ref, tag string) (*project.Project, *Release, error) {
	p, err := s.existing(ctx, by, ref, tag)
	if err != nil {
		return nil, nil, err
	}
	r, err := findRelease(ctx, s.DB, p.ID, tag)
	if err != nil {
		return nil, nil, db.NotFound(err, "")
	}
	if err := s.fill(ctx, by, p, r); err != nil {
		return nil, nil, err
	}
	_, err = s.change(ctx, by, p, tag, s.Events.Deleted, "release_deleted", "Deleted release "+tag, func(tx *db.Tx, r *Release) error {
		return deleteRelease(ctx, tx, r.ID)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("delete release: %w", err)
	}
	return p, r, nil
}

// existing returns the project of a release that the actor may change. NotFound if
// there is no such release, Forbidden.
func (s *Service) existing(ctx context.Context, by actor.Actor, ref project.Ref, tag string) (*project.Project, error) {
	p, err := s.changeable(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if _, err := findRelease(ctx, s.DB, p.ID, tag); err != nil {
		return nil, db.NotFound(err, "")
	}
	return p, s.checkTag(ctx, by, p, tag)
}

// change changes a release in a transaction, with an audit event.
func (s *Service) change(ctx context.Context, by actor.Actor, p *project.Project, tag string, what event.Event[Change], kind, message string, do func(*db.Tx, *Release) error) (*Release, error) {
	var r *Release
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		var err error
		if r, err = lockRelease(ctx, tx, p.ID, tag); err != nil {
			return db.NotFound(err, "")
		}
		if err := do(tx, r); err != nil {
			return err
		}
		if err := s.record(ctx, tx, by, p, r, kind, message); err != nil {
			return err
		}
		return what.Publish(ctx, tx, Change{p, r, by})
	})
	return r, err
}

func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, r *Release, kind, message string) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: audit.Entity{Type: audit.ProjectEntity, ID: p.ID, Path: p.FullPath},
		Target: audit.Target{Type: "Release", ID: r.ID, Details: r.Name}, Details: audit.Details{Message: message},
	})
}

// Pushed deletes the releases of deleted tags.
func (s *Service) Pushed(ctx context.Context, tx *db.Tx, push repo.Push) error {
	for _, c := range push.Changes {
		tag, ok := strings.CutPrefix(c.Ref, git.Tags)
		if !ok || c.New != git.ZeroOID {
			continue
		}
		r, err := lockRelease(ctx, tx, push.Project.ID, tag)
		if errs.Is(db.NotFound(err, ""), errs.KindNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if err := deleteRelease(ctx, tx, r.ID); err != nil {
			return err
		}
		if err := s.record(ctx, tx, push.By, push.Project, r, "release_deleted", "Deleted release "+tag+" with its tag"); err != nil {
			return err
		}
		if err := s.Events.Deleted.Publish(ctx, tx, Change{push.Project, r, push.By}); err != nil {
			return err
		}
	}
	return nil
}
