package transfer

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"svc/internal/badge"
	"svc/internal/board"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/transfer/archive"
	"svc/internal/user"
)

// source writes the content of groups.
type source struct {
	*Service
	*archive.Writer
	meter   *meter
	numbers map[int64]int // of the directories, by the ids of the groups
	digests bool          // digests of addresses are written
}

// write writes a group and its subgroups, with or without digests of the addresses
// of users. The same content produces the same entries, except for the manifest.
func (s *Service) write(ctx context.Context, out io.Writer, m *meter, top *project.Namespace, tree []project.Branch, digests bool) (err error) {
	w, err := archive.NewWriter(out, archive.Groups(), s.TempDir, s.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.Begin(archive.Origin{Name: top.Name, Path: top.Path, FullPath: top.FullPath}); err != nil {
		return err
	}
	from := &source{Service: s, Writer: w, meter: m, numbers: map[int64]int{}, digests: digests}
	for _, b := range tree {
		g, err := s.Projects.Leaf(ctx, b)
		if errs.Is(err, errs.KindNotFound) && b.Path != "" {
			continue // the group was deleted in the meantime
		}
		if err != nil {
			return err
		}
		if err := from.writeGroup(ctx, g, b.Path); err != nil {
			return err
		}
	}
	return w.Finish()
}

func (s *source) writeGroup(ctx context.Context, g *project.Namespace, path string) error {
	s.numbers[g.ID] = s.Group()
	for _, write := range []func(context.Context, *project.Namespace) error{
		func(ctx context.Context, g *project.Namespace) error { return s.writeRow(ctx, g, path) },
		s.writeAvatar, s.writeLabels, s.writeMilestones, s.writeBoards, s.writeBadges, s.writeMembers, s.writeWiki,
	} {
		if err := write(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// each writes a part, and counts its rows.
func (s *source) each(p archive.Part, fill func(add func(row any) error) error) error {
	return s.Rows(p, func(add func(row any) error) error {
		return fill(func(row any) error {
			s.meter.done.Add(1)
			return add(row)
		})
	})
}

func (s *source) writeRow(ctx context.Context, g *project.Namespace, path string) error {
	row := archive.GroupRow{Path: path, Description: g.Description, CreatedAt: g.CreatedAt.UTC(), Settings: fromSettings(&g.Settings)}
	if path != "" {
		row.Name = g.Name
	}
	var err error
	if row.WikiBranch, err = s.Wikis.Branch(ctx, g); err != nil {
		return err
	}
	return s.each(archive.GroupPart, func(add func(any) error) error { return add(row) })
}

func fromSettings(g *project.GroupSettings) archive.SettingsRow {
	return archive.SettingsRow{
		ProjectCreationLevel: g.ProjectCreationLevel, SubgroupCreationLevel: g.SubgroupCreationLevel, RequestAccessEnabled: g.RequestAccessEnabled,
		TwoFactorGracePeriod: g.TwoFactorGracePeriod,
		ShareWithGroupLock:   g.ShareWithGroupLock, MembershipLock: g.MembershipLock, LFSEnabled: g.LFSEnabled, EmailsEnabled: g.EmailsEnabled,
		MentionsDisabled: g.MentionsDisabled, DefaultBranch: g.DefaultBranch,
		SharedRunnersSetting: g.SharedRunnersSetting, WikiAccessLevel: string(g.WikiAccessLevel),
		OnlyAllowMergeIfPipelineSucceeds: g.OnlyAllowMergeIfPipelineSucceeds, AllowMergeOnSkippedPipeline: g.AllowMergeOnSkippedPipeline,
		OnlyAllowMergeIfAllDiscussionsAreResolved: g.OnlyAllowMergeIfAllDiscussionsAreResolved, Approvals: archive.ApprovalsRow(g.Approvals),
	}
}

func (s *source) writeAvatar(ctx context.Context, g *project.Namespace) error {
	if g.Avatar == "" {
		return nil
	}
	picture, err := s.Projects.Picture(ctx, g)
	if errs.Is(err, errs.KindNotFound) {
		return nil // it was replaced in the meantime
	}
	if err != nil {
		return err
	}
	defer picture.Close()
	return s.File(archive.AvatarPart, strings.ToLower(path.Ext(g.Avatar)), func(w io.Writer) (bool, error) {
		_, err := io.Copy(w, picture)
		return true, err
	})
}

func (s *source) writeLabels(ctx context.Context, g *project.Namespace) error {
	return s.each(archive.LabelPart, func(add func(any) error) error {
		return s.Plan.EachLabel(ctx, g, func(l *plan.Label) error {
			return add(archive.LabelRow{Name: l.Name, Color: l.Color, Description: l.Description, CreatedAt: l.CreatedAt.UTC(), UpdatedAt: l.UpdatedAt.UTC()})
		})
	})
}

func (s *source) writeMilestones(ctx context.Context, g *project.Namespace) error {
	return s.each(archive.MilestonePart, func(add func(any) error) error {
		return s.Plan.EachMilestone(ctx, g, func(m *plan.Milestone) error {
			return add(archive.MilestoneRow{
				IID: m.IID, Title: m.Title, Description: m.Description, State: string(m.State), StartDate: m.StartDate, DueDate: m.DueDate,
				CreatedAt: m.CreatedAt.UTC(), UpdatedAt: m.UpdatedAt.UTC(),
			})
		})
	})
}

func (s *source) writeBadges(ctx context.Context, g *project.Namespace) error {
	return s.each(archive.BadgePart, func(add func(any) error) error {
		return s.Badges.Each(ctx, g, func(b *badge.Badge) error {
			return add(archive.BadgeRow{Name: b.Name, LinkURL: b.LinkURL, ImageURL: b.ImageURL, CreatedAt: b.CreatedAt.UTC()})
		})
	})
}

func (s *source) writeMembers(ctx context.Context, g *project.Namespace) error {
	return s.each(archive.MemberPart, func(add func(any) error) error {
		return s.Projects.EachMember(ctx, g, func(m *project.Member) error {
			return add(archive.MemberRow{PersonRow: *s.person(m.User.Person()), AccessLevel: int64(m.Level), ExpiresAt: m.ExpiresAt, CreatedAt: m.CreatedAt.UTC()})
		})
	})
}

func (s *source) person(p user.Person) *archive.PersonRow {
	row := &archive.PersonRow{Username: p.Username, Name: p.Name}
	if s.digests {
		row.Email = p.Digest
	}
	return row
}

func (s *source) writeBoards(ctx context.Context, g *project.Namespace) error {
	return s.each(archive.BoardPart, func(add func(any) error) error {
		return s.Boards.Each(ctx, plan.Owner{Group: g}, func(list []*board.Board) error {
			var ids []int64
			for _, b := range list {
				ids = appendID(ids, b.AssigneeID)
				for _, l := range b.Lists {
					ids = appendID(ids, l.AssigneeID)
				}
			}
			people, err := s.Users.Persons(ctx, ids)
			if err != nil {
				return err
			}
			for _, b := range list {
				if err := add(s.board(b, people)); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func appendID(ids []int64, id *int64) []int64 {
	if id == nil {
		return ids
	}
	return append(ids, *id)
}

// board returns the row of a board, without lists whose label, milestone or
// assignee was deleted in the meantime.
func (s *source) board(b *board.Board, people map[int64]user.Person) archive.BoardRow {
	row := archive.BoardRow{
		Name: b.Name, HideBacklog: b.HideBacklog, HideClosed: b.HideClosed, Weight: b.Weight, Labels: b.LabelNames, CreatedAt: b.CreatedAt.UTC(),
		Milestone: s.milestone(b.Milestone), Assignee: s.pick(people, b.AssigneeID),
	}
	for _, l := range b.Lists {
		list := archive.ListRow{Label: s.label(l.Label), Milestone: s.milestone(l.Milestone), Assignee: s.pick(people, l.AssigneeID)}
		if list != (archive.ListRow{}) {
			row.Lists = append(row.Lists, list)
		}
	}
	return row
}

func (s *source) pick(people map[int64]user.Person, id *int64) *archive.PersonRow {
	if id == nil {
		return nil
	}
	p, ok := people[*id]
	if !ok {
		return nil
	}
	return s.person(p)
}

func (s *source) label(l *plan.Label) *archive.Reference {
	if l == nil || l.GroupID == nil {
		return nil
	}
	return &archive.Reference{Group: s.numbers[*l.GroupID], Title: l.Name}
}

func (s *source) milestone(m *plan.Milestone) *archive.Reference {
	if m == nil || m.GroupID == nil {
		return nil
	}
	return &archive.Reference{Group: s.numbers[*m.GroupID], Title: m.Title}
}

func (s *source) writeWiki(ctx context.Context, g *project.Namespace) error {
	return s.File(archive.WikiPart, "", func(w io.Writer) (bool, error) { return s.Wikis.Bundle(ctx, g, w) })
}
