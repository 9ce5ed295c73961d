package rows

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"svc/internal/ci/schedule"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/release"
	"svc/internal/repo"
	"svc/internal/snippet"
	"svc/internal/transfer/archive"
	"svc/internal/upload"
)

func (t *Target) putUpload(ctx context.Context, tx *db.Tx, r *archive.UploadRow) error {
	wrong := errs.Fields{}
	if b, err := hex.DecodeString(r.Secret); err != nil || len(b) != 16 || r.Secret != strings.ToLower(r.Secret) {
		wrong.Set("secret", "is invalid")
	}
	filled(wrong, "name", r.Name, 255)
	if strings.ContainsAny(r.Name, "/\\\r\n") || r.Name == "." || r.Name == ".." {
		wrong.Set("name", "is invalid")
	}
	inRange(wrong, "size", r.Size, 0, upload.MaxSize)
	if err := wrong.Err(); err != nil {
		return err
	}
	author, err := t.find(r.Author)
	if err != nil {
		return err
	}
	return insertUpload(ctx, tx, t.Draft.ID, r, author, t.past(r.CreatedAt))
}

func (t *Target) putProtected(ctx context.Context, tx *db.Tx, r *archive.ProtectedRow) error {
	p := &repo.Protected{
		ProjectID: t.Draft.ID, Kind: repo.RefKind(r.Kind), Name: r.Name, AllowForcePush: r.AllowForcePush, CodeOwnerApproval: r.CodeOwnerApproval, CreatedAt: t.past(r.CreatedAt),
	}
	for _, a := range r.Access {
		entry := repo.RefAccess{Action: repo.RefAction(a.Action), Level: project.Level(a.AccessLevel)}
		if a.User != 0 {
			user, err := t.need(a.User)
			if err != nil {
				return err
			}
			if user == nil {
				continue
			}
			entry.UserID, entry.Level = user, project.Maintainer
		}
		p.Access = append(p.Access, entry)
	}
	// A rule must not become wider: an action that only unknown users may do is for no
	// one. An action without entries would be for Maintainers.
	for _, a := range r.Access {
		action := repo.RefAction(a.Action)
		if action != repo.Unprotect && !slices.ContainsFunc(p.Access, func(e repo.RefAccess) bool { return e.Action == action }) {
			p.Access = append(p.Access, repo.RefAccess{Action: action, Level: project.NoAccess})
		}
	}
	return repo.PutProtected(ctx, tx, p)
}

func (t *Target) putRelease(ctx context.Context, tx *db.Tx, r *archive.ReleaseRow) error {
	wrong := errs.Fields{}
	filled(wrong, "tag_name", r.Tag, 255)
	if git.CheckRef(git.Tags+r.Tag) != nil {
		wrong.Set("tag_name", "is invalid")
	}
	short(wrong, "name", r.Name, release.MaxName)
	text(wrong, "description", r.Description)
	checkSHA(wrong, "sha", r.SHA)
	if len(r.Links) > release.MaxLinks {
		wrong.Set("links", "are too many")
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	author, err := t.orGhost(r.Author)
	if err != nil {
		return err
	}
	// A release may be planned: this one time can be in the future.
	released := r.ReleasedAt.UTC().Truncate(time.Microsecond)
	if released.Year() < 1970 || released.Year() > 9999 {
		released = t.Now
	}
	id, err := insertRelease(ctx, tx, t.Draft.ID, r, author, t.past(r.CreatedAt), t.past(r.UpdatedAt), released)
	if err != nil {
		return err
	}
	for _, l := range r.Links {
		link := release.Link{ReleaseID: id, Name: l.Name, URL: l.URL, Type: l.LinkType, CreatedAt: t.past(l.CreatedAt)}
		if l.Filepath != nil {
			link.Path = *l.Filepath
		}
		if err := release.PutLink(ctx, tx, &link); err != nil {
			return err
		}
	}
	for _, title := range r.Milestones {
		m, err := t.milestone(ctx, tx, title)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		if err := insertReleaseMilestone(ctx, tx, id, *m); err != nil {
			return err
		}
	}
	return nil
}

func (t *Target) putSnippet(ctx context.Context, tx *db.Tx, r *archive.SnippetRow) error {
	wrong := errs.Fields{}
	filled(wrong, "title", r.Title, 255)
	text(wrong, "description", r.Description)
	among(wrong, "visibility", r.Visibility, string(project.Private), string(project.Internal), string(project.Public))
	if len(r.Files) == 0 || len(r.Files) > snippet.MaxFiles {
		wrong.Set("files", "are none or too many")
	}
	for i, name := range r.Files {
		filled(wrong, "files", name, 1024)
		if slices.Contains(r.Files[:i], name) {
			wrong.Set("files", "are not different")
		}
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	author, err := t.signed(r.Author, t.past(r.CreatedAt), &r.Description)
	if err != nil {
		return err
	}
	files, err := json.Marshal(r.Files)
	if err != nil {
		return err
	}
	id, err := insertSnippet(ctx, tx, t.Draft.ID, r, author, string(files), t.past(r.CreatedAt), t.past(r.UpdatedAt))
	if err != nil {
		return err
	}
	t.made = append(t.made, id)
	awards, _, _, err := t.reactions(r.AwardEmoji)
	if err != nil {
		return err
	}
	return insertAwards(ctx, tx, plan.Target{Kind: snippetKind, ID: id}, awards)
}

const snippetKind plan.Kind = "Snippet"

func (t *Target) putSchedule(ctx context.Context, tx *db.Tx, r *archive.ScheduleRow) error {
	if err := schedule.CheckRule(r.Description, r.Cron, r.Timezone); err != nil {
		return err
	}
	wrong := errs.Fields{}
	filled(wrong, "description", r.Description, 255)
	filled(wrong, "ref", r.Ref, 1024)
	if err := wrong.Err(); err != nil {
		return err
	}
	return insertSchedule(ctx, tx, t.Draft.ID, t.ByID, r, t.past(r.CreatedAt), t.past(r.UpdatedAt))
}

func (t *Target) putApprovalRule(ctx context.Context, tx *db.Tx, r *archive.ApprovalRuleRow) error {
	wrong := errs.Fields{}
	filled(wrong, "name", r.Name, 1024)
	among(wrong, "rule_type", r.RuleType, string(merge.AnyApprover), "regular")
	inRange(wrong, "approvals_required", r.ApprovalsRequired, 0, project.MaxApprovals)
	if err := wrong.Err(); err != nil {
		return err
	}
	var users []int64
	for _, p := range r.Users {
		user, err := t.need(p)
		if err != nil {
			return err
		}
		if user != nil && !slices.Contains(users, *user) {
			users = append(users, *user)
		}
	}
	if r.RuleType == "regular" && len(users) == 0 {
		t.lost["approval_rule"]++ // no one could approve
		return nil
	}
	return insertApprovalRule(ctx, tx, t.Draft.ID, r, users, t.past(r.CreatedAt))
}
