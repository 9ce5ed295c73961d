package transfer

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/user"
)

// source writes the content of groups.
type source struct {
	*Service
	*writer
	meter   *meter
	numbers map[int64]int // of the directories, by the ids of the groups
}

// write writes a group and all below it. The same content makes the same
// entries, but for the manifest.
func (s *Service) write(ctx context.Context, out io.Writer, m *meter, top *project.Namespace, tree []project.Branch) (err error) {
	w, err := newWriter(out, s.TempDir, s.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	err = w.manifest(manifest{
		Format: formatName, Version: version, ExportedAt: s.Now().UTC(), Group: origin{Name: top.Name, Path: top.Path, FullPath: top.FullPath},
	})
	if err != nil {
		return err
	}
	from := &source{Service: s, writer: w, meter: m, numbers: map[int64]int{}}
	for _, b := range tree {
		g, err := s.Projects.Leaf(ctx, b)
		if errs.Is(err, errs.KindNotFound) && b.Path != "" {
			continue // it has gone since, with all below it
		}
		if err != nil {
			return err
		}
		if err := from.writeGroup(ctx, g, b.Path); err != nil {
			return err
		}
	}
	return w.finish()
}

func (s *source) writeGroup(ctx context.Context, g *project.Namespace, path string) error {
	s.group++
	s.numbers[g.ID] = s.group
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
func (s *source) each(p part, fill func(add func(row any) error) error) error {
	return s.rows(p, func(add func(row any) error) error {
		return fill(func(row any) error {
			s.meter.done.Add(1)
			return add(row)
		})
	})
}

func (s *source) writeRow(ctx context.Context, g *project.Namespace, path string) error {
	row := groupRow{Path: path, Description: g.Description, CreatedAt: g.CreatedAt.UTC(), Settings: fromSettings(&g.Settings)}
	if path != "" {
		row.Name = g.Name
	}
	var err error
	if row.WikiBranch, err = s.Wikis.Branch(ctx, g); err != nil {
		return err
	}
	return s.each(groupPart, func(add func(any) error) error { return add(row) })
}

func fromSettings(g *project.GroupSettings) settingsRow {
	return settingsRow{
		ProjectCreationLevel: g.ProjectCreationLevel, SubgroupCreationLevel: g.SubgroupCreationLevel, RequestAccessEnabled: g.RequestAccessEnabled,
		RequireTwoFactorAuthentication: g.RequireTwoFactorAuthentication, TwoFactorGracePeriod: g.TwoFactorGracePeriod,
		ShareWithGroupLock: g.ShareWithGroupLock, MembershipLock: g.MembershipLock, LFSEnabled: g.LFSEnabled, EmailsEnabled: g.EmailsEnabled,
		MentionsDisabled: g.MentionsDisabled, AutoDevopsEnabled: g.AutoDevopsEnabled, DefaultBranch: g.DefaultBranch,
		SharedRunnersSetting: g.SharedRunnersSetting, WikiAccessLevel: string(g.WikiAccessLevel),
		OnlyAllowMergeIfPipelineSucceeds: g.OnlyAllowMergeIfPipelineSucceeds,
	}
}

func (s *source) writeAvatar(ctx context.Context, g *project.Namespace) error {
	if g.Avatar == "" {
		return nil
	}
	picture, err := s.Projects.Picture(ctx, g)
	if errs.Is(err, errs.KindNotFound) {
		return nil // another one took its place just now
	}
	if err != nil {
		return err
	}
	defer picture.Close()
	return s.file(avatarPart, strings.ToLower(path.Ext(g.Avatar)), func(w io.Writer) (bool, error) {
		_, err := io.Copy(w, picture)
		return true, err
	})
}

func (s *source) writeLabels(ctx context.Context, g *project.Namespace) error {
	return s.each(labelPart, func(add func(any) error) error {
		return s.Plan.EachLabel(ctx, g, func(l *plan.Label) error {
			return add(labelRow{l.Name, l.Color, l.Description, l.CreatedAt.UTC(), l.UpdatedAt.UTC()})
		})
	})
}

func (s *source) writeMilestones(ctx context.Context, g *project.Namespace) error {
	return s.each(milestonePart, func(add func(any) error) error {
		return s.Plan.EachMilestone(ctx, g, func(m *plan.Milestone) error {
			return add(milestoneRow{m.IID, m.Title, m.Description, string(m.State), m.StartDate, m.DueDate, m.CreatedAt.UTC(), m.UpdatedAt.UTC()})
		})
	})
}

func (s *source) writeBadges(ctx context.Context, g *project.Namespace) error {
	return s.each(badgePart, func(add func(any) error) error {
		return s.Plan.EachBadge(ctx, g, func(b *plan.Badge) error {
			return add(badgeRow{b.Name, b.LinkURL, b.ImageURL, b.CreatedAt.UTC()})
		})
	})
}

func (s *source) writeMembers(ctx context.Context, g *project.Namespace) error {
	return s.each(memberPart, func(add func(any) error) error {
		return s.Projects.EachMember(ctx, g, func(m *project.Member) error {
			return add(memberRow{*toPerson(m.User.Person()), int64(m.Level), m.ExpiresAt, m.CreatedAt.UTC()})
		})
	})
}

func toPerson(p user.Person) *personRow { return &personRow{p.Username, p.Name, p.Digest} }

func (s *source) writeBoards(ctx context.Context, g *project.Namespace) error {
	return s.each(boardPart, func(add func(any) error) error {
		return s.Plan.EachBoard(ctx, g, func(list []*plan.Board) error {
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

// board makes the row of a board. A list of something that went just now is left
// out.
func (s *source) board(b *plan.Board, people map[int64]user.Person) boardRow {
	row := boardRow{
		Name: b.Name, HideBacklog: b.HideBacklog, HideClosed: b.HideClosed, Weight: b.Weight, Labels: b.LabelNames, CreatedAt: b.CreatedAt.UTC(),
		Milestone: s.milestone(b.Milestone), Assignee: pick(people, b.AssigneeID),
	}
	for _, l := range b.Lists {
		list := listRow{Label: s.label(l.Label), Milestone: s.milestone(l.Milestone), Assignee: pick(people, l.AssigneeID)}
		if list != (listRow{}) {
			row.Lists = append(row.Lists, list)
		}
	}
	return row
}

func pick(people map[int64]user.Person, id *int64) *personRow {
	if id == nil {
		return nil
	}
	p, ok := people[*id]
	if !ok {
		return nil
	}
	return toPerson(p)
}

func (s *source) label(l *plan.Label) *reference {
	if l == nil || l.GroupID == nil {
		return nil
	}
	return &reference{s.numbers[*l.GroupID], l.Name}
}

func (s *source) milestone(m *plan.Milestone) *reference {
	if m == nil || m.GroupID == nil {
		return nil
	}
	return &reference{s.numbers[*m.GroupID], m.Title}
}

func (s *source) writeWiki(ctx context.Context, g *project.Namespace) error {
	return s.file(wikiPart, "", func(w io.Writer) (bool, error) { return s.Wikis.Bundle(ctx, g, w) })
}
