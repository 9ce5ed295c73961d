package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/badge"
	"svc/internal/blob"
	"svc/internal/board"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/transfer/archive"
	"svc/internal/transfer/rows"
)

// StartProjectExport starts the export of a project in the background, for
// Maintainers; NotFound, Forbidden. It returns the current export if there is one.
// As with groups, only the file of an administrator has digests of addresses.
// description replaces that of the project, unless it is nil. If to is not nil, the
// file is also sent there; then Invalid for a URL that requests may not reach, and
// Conflict if an export is in progress.
func (s *Service) StartProjectExport(ctx context.Context, by actor.Actor, ref project.Ref, description *string, to *Upload) (*Export, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return nil, err
	}
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	if description != nil && len(*description) > maxDescription {
		return nil, errs.InvalidField("description", "is too long (maximum is %d bytes)", maxDescription)
	}
	message := "Project export started"
	if to != nil {
		host, err := s.checkUpload(ctx, to)
		if err != nil {
			return nil, err
		}
		message = "Project export with an upload to " + host + " started"
	}
	return s.startExport(ctx, by, &Export{Project: true, OwnerID: &p.ID, description: description}, to, "projects", audit.Event{
		Type: "project_export_created", Entity: p.Entity(), Details: audit.Details{Add: "export", Message: message},
	})
}

const maxDescription = 2000

// ProjectExports returns the latest exports of a project, for Maintainers. Only
// administrators see exports with addresses; NotFound, Forbidden.
func (s *Service) ProjectExports(ctx context.Context, by actor.Actor, ref project.Ref) (*Exports, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return nil, err
	}
	found := &Exports{Project: p}
	return found, s.fillExports(ctx, by, found, true, p.ID)
}

// OpenProjectExport opens the newest file of a project, for Maintainers; the caller
// closes it. NotFound, also if there is no file or it has expired; Forbidden.
func (s *Service) OpenProjectExport(ctx context.Context, by actor.Actor, ref project.Ref) (*Exports, *blob.Object, error) {
	found, err := s.ProjectExports(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	return s.openExport(ctx, found)
}

// exportProject writes the file of a project and notifies the user.
func (s *Service) exportProject(ctx context.Context, e *Export, by actor.Actor) error {
	p, err := s.Projects.Require(ctx, by, project.RefTo(*e.OwnerID), project.Maintainer)
	if err != nil {
		return err
	}
	if p.Import.Pending() {
		return errs.Conflict("The project is being imported.")
	}
	there, err := s.written(ctx, e)
	if err != nil {
		return err
	}
	if !there {
		if err := s.writeProject(ctx, e, by, p); err != nil {
			return err
		}
	}
	if e.upload != "" {
		if err := s.send(ctx, e); err != nil {
			return err
		}
	}
	return s.finishExport(ctx, e, by, notice{"project", p.FullPath, p.FullName(), "/" + p.FullPath + "/-/settings/export"})
}

// writeProject writes the file of a project.
func (s *Service) writeProject(ctx context.Context, e *Export, by actor.Actor, p *project.Project) error {
	if e.description != nil {
		p.Description = *e.description
	}
	ghost, err := rows.Ghost(ctx, s.DB)
	if err != nil {
		return fmt.Errorf("find ghost user: %w", err)
	}
	from := &projectSource{Service: s, rows: rows.Source{DB: s.DB, ProjectID: p.ID, GhostID: ghost}, p: p, digests: e.addresses && by.Admin}
	if e.Total, err = from.rows.Count(ctx); err != nil {
		return fmt.Errorf("count rows of project %d: %w", p.ID, err)
	}
	return s.measured(ctx, e, func(out io.Writer, m *meter) error { return from.write(ctx, out, m) })
}

// projectSource writes the content of a project.
type projectSource struct {
	*Service
	*archive.Writer
	rows     rows.Source
	p        *project.Project
	meter    *meter
	digests  bool // digests of addresses are written
	snippets map[int64]int64
}

// write writes the project. The same content produces the same entries, except for
// the manifest.
func (s *projectSource) write(ctx context.Context, out io.Writer, m *meter) (err error) {
	w, err := archive.NewWriter(out, archive.Project(), s.TempDir, s.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	s.Writer, s.meter = w, m
	if err := w.Begin(archive.Origin{Name: s.p.Name, Path: s.p.Path, FullPath: s.p.FullPath}); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{
		s.writeRow, s.writeAvatar, s.writeRepository, s.writeLFS, s.writeUploads, s.writeMembers,
		s.part(archive.LabelPart, s.rows.Labels), s.part(archive.MilestonePart, s.rows.Milestones), s.part(archive.ProtectedPart, s.rows.ProtectedRefs),
		s.writeBoards, s.writeBadges,
		s.part(archive.IssuePart, s.rows.Issues), s.part(archive.IssueLinkPart, s.rows.IssueLinks), s.part(archive.MergeRequestPart, s.rows.MergeRequests),
		s.part(archive.ReleasePart, s.rows.Releases), s.writeSnippets, s.writeNotes,
		s.part(archive.CommentPart, s.rows.Comments), s.part(archive.EventPart, s.rows.Events), s.part(archive.SchedulePart, s.rows.Schedules),
		s.part(archive.ApprovalRulePart, s.rows.ApprovalRules), s.writePeople,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return w.Finish()
}

// part returns a function that writes the rows of a part.
func (s *projectSource) part(p archive.Part, read func(context.Context, rows.Add) error) func(context.Context) error {
	return func(ctx context.Context) error {
		return s.Rows(p, func(add func(any) error) error {
			return read(ctx, func(row any) error {
				s.meter.done.Add(1)
				return add(row)
			})
		})
	}
}

func (s *projectSource) writeRow(ctx context.Context) error {
	p := s.p
	row := archive.ProjectRow{
		Description: p.Description, Visibility: string(p.Visibility), Archived: p.Archived, DefaultBranch: p.DefaultBranch, CreatedAt: p.CreatedAt.UTC(),
	}
	var err error
	if row.Topics, err = s.rows.Topics(ctx); err != nil {
		return err
	}
	if row.WikiBranch, err = s.Wikis.ProjectBranch(ctx, p); err != nil {
		return err
	}
	if row.Settings, err = encodeSettings(p); err != nil {
		return err
	}
	rules, err := s.Content.PushRules.RulesOf(ctx, p.ID)
	if err != nil {
		return err
	}
	if row.PushRules, err = encodeRules(rules); err != nil {
		return err
	}
	return s.Rows(archive.ProjectPart, func(add func(any) error) error { return add(row) })
}

func (s *projectSource) writeAvatar(ctx context.Context) error {
	if s.p.Avatar == "" {
		return nil
	}
	picture, err := s.Projects.ProjectPicture(ctx, s.p)
	if errs.Is(err, errs.KindNotFound) {
		return nil // it was replaced in the meantime
	}
	if err != nil {
		return err
	}
	defer picture.Close()
	return s.copy(archive.AvatarPart, strings.ToLower(path.Ext(s.p.Avatar)), picture)
}

// copy writes a file.
func (s *projectSource) copy(p archive.Part, name string, from io.Reader) error {
	return s.File(p, name, func(w io.Writer) (bool, error) {
		_, err := io.Copy(w, from)
		return true, err
	})
}

func (s *projectSource) writeRepository(ctx context.Context) error {
	err := s.File(archive.RepositoryPart, "", func(w io.Writer) (bool, error) { return s.Content.Repos.BundleProject(ctx, s.p, w) })
	if err != nil {
		return err
	}
	return s.File(archive.WikiPart, "", func(w io.Writer) (bool, error) { return s.Wikis.BundleProject(ctx, s.p, w) })
}

func (s *projectSource) writeLFS(ctx context.Context) error {
	for after := ""; ; {
		list, err := s.rows.LFSObjects(ctx, after)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, o := range list {
			after = o.OID
			if err := s.writeObject(ctx, o.OID); err != nil {
				return err
			}
		}
	}
}

func (s *projectSource) writeObject(ctx context.Context, oid string) error {
	file, err := s.Content.LFS.Open(ctx, s.p, oid)
	if errs.Is(err, errs.KindNotFound) {
		return nil // it was removed in the meantime
	}
	if err != nil {
		return err
	}
	defer file.Close()
	return s.copy(archive.LFSPart, oid, file)
}

// writeUploads writes the files that texts link to. Files without content are left
// out.
func (s *projectSource) writeUploads(ctx context.Context) error {
	var list []archive.UploadRow
	err := s.rows.Uploads(ctx, func(row any) error {
		list = append(list, row.(archive.UploadRow))
		return nil
	})
	if err != nil {
		return err
	}
	var there []archive.UploadRow
	for _, row := range list {
		file, err := s.Content.Uploads.Content(ctx, s.p.ID, row.Secret)
		if errs.Is(err, errs.KindNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
		there = append(there, row)
	}
	err = s.Rows(archive.UploadPart, func(add func(any) error) error {
		for _, row := range there {
			if err := add(row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, row := range there {
		if err := s.writeUpload(ctx, row.Secret); err != nil {
			return err
		}
	}
	return nil
}

func (s *projectSource) writeUpload(ctx context.Context, secret string) error {
	file, err := s.Content.Uploads.Content(ctx, s.p.ID, secret)
	if err != nil {
		return fmt.Errorf("open upload: %w", err)
	}
	defer file.Close()
	return s.copy(archive.UploadFilePart, secret, file)
}

func (s *projectSource) writeMembers(ctx context.Context) error {
	return s.Rows(archive.MemberPart, func(add func(any) error) error {
		return s.Projects.EachProjectMember(ctx, s.p, func(m *project.Member) error {
			return add(archive.ProjectMemberRow{User: s.rows.Person(&m.UserID), AccessLevel: int64(m.Level), ExpiresAt: m.ExpiresAt, CreatedAt: m.CreatedAt.UTC()})
		})
	})
}

func (s *projectSource) writeBoards(ctx context.Context) error {
	return s.Rows(archive.BoardPart, func(add func(any) error) error {
		return s.Boards.Each(ctx, plan.Owner{Project: s.p}, func(list []*board.Board) error {
			for _, b := range list {
				if err := add(s.board(b)); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// board returns the row of a board, without lists whose label or milestone was deleted
// in the meantime.
func (s *projectSource) board(b *board.Board) archive.ProjectBoardRow {
	row := archive.ProjectBoardRow{
		Name: b.Name, HideBacklog: b.HideBacklog, HideClosed: b.HideClosed, Assignee: s.rows.Person(b.AssigneeID), Weight: b.Weight, Labels: b.LabelNames, CreatedAt: b.CreatedAt.UTC(),
	}
	if b.Milestone != nil {
		row.Milestone = b.Milestone.Title
	}
	for _, l := range b.Lists {
		list := archive.ProjectListRow{Assignee: s.rows.Person(l.AssigneeID)}
		if l.Label != nil {
			list.Label = l.Label.Name
		}
		if l.Milestone != nil {
			list.Milestone = l.Milestone.Title
		}
		if list != (archive.ProjectListRow{}) {
			row.Lists = append(row.Lists, list)
		}
	}
	return row
}

func (s *projectSource) writeBadges(ctx context.Context) error {
	return s.Rows(archive.BadgePart, func(add func(any) error) error {
		return s.Badges.EachOfProject(ctx, s.p, func(b *badge.Badge) error {
			return add(archive.BadgeRow{Name: b.Name, LinkURL: b.LinkURL, ImageURL: b.ImageURL, CreatedAt: b.CreatedAt.UTC()})
		})
	})
}

// writeSnippets writes the snippets that have a repository.
func (s *projectSource) writeSnippets(ctx context.Context) error {
	list, err := s.rows.Snippets(ctx)
	if err != nil {
		return err
	}
	s.snippets = map[int64]int64{}
	var repos []*repo.AuxRepo
	err = s.Rows(archive.SnippetPart, func(add func(any) error) error {
		for _, snippet := range list {
			a, err := s.Content.Repos.SnippetAuxRepo(ctx, snippet.ID)
			if err != nil {
				return err
			}
			if a == nil {
				continue
			}
			r, err := s.Content.Repos.OpenAuxRepo(a)
			if err != nil {
				return err
			}
			if snippet.Branch, err = r.DefaultBranch(ctx); err != nil {
				continue // it was deleted in the meantime
			}
			repos = append(repos, a)
			s.snippets[snippet.ID] = int64(len(repos))
			if err := add(snippet.SnippetRow); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for n, a := range repos {
		err := s.File(archive.SnippetFilePart, fmt.Sprintf("%d.bundle", n+1), func(w io.Writer) (bool, error) {
			there, err := s.Content.Repos.BundleAuxRepo(ctx, a, w)
			if err == nil && !there {
				err = errs.Conflict("A snippet was deleted while it was exported. Export the project again.")
			}
			return there, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *projectSource) writeNotes(ctx context.Context) error {
	return s.part(archive.NotePart, func(ctx context.Context, add rows.Add) error { return s.rows.Notes(ctx, s.snippets, add) })(ctx)
}

// writePeople writes the users that the other rows name.
func (s *projectSource) writePeople(ctx context.Context) error {
	return s.Rows(archive.PersonPart, func(add func(any) error) error {
		ids := s.rows.UserIDs()
		for from := 0; from < len(ids); from += 500 {
			part := ids[from:min(len(ids), from+500)]
			names, err := rows.Names(ctx, s.DB, part)
			if err != nil {
				return err
			}
			people, err := s.Users.Persons(ctx, part)
			if err != nil {
				return err
			}
			for _, id := range part {
				row := archive.PersonRow{Username: names[id].Username, Name: names[id].Name}
				if s.digests {
					row.Email = people[id].Digest
				}
				if err := add(row); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
