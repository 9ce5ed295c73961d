package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"svc/internal/actor"
	"svc/internal/codeowners"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/lru"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// ownersFile returns the file CODEOWNERS of a commit; nil if there is none.
func (s *Service) ownersFile(ctx context.Context, in *project.Project, at git.OID) (*repo.FileBlob, error) {
	for _, path := range codeowners.Paths() {
		f, err := s.Repos.FileBlob(ctx, actor.System(), project.RefTo(in.ID), path, string(at))
		if errs.Is(err, errs.KindNotFound) {
			continue
		}
		return f, err
	}
	return nil, nil
}

// ownersCache caches the object IDs of the CODEOWNERS files of commits.
type ownersCache struct {
	mu    sync.Mutex
	known *lru.Map[ownersKey, string] // object ID of the file; empty: none
}

type ownersKey struct {
	projectID int64
	commit    git.OID
}

// ownersID returns the object ID of CODEOWNERS in a commit; empty if there is none.
// It is cached, because a commit never changes.
func (s *Service) ownersID(ctx context.Context, in *project.Project, at git.OID) (string, error) {
	c, key := &s.owners, ownersKey{in.ID, at}
	c.mu.Lock()
	if c.known == nil {
		c.known = lru.New[ownersKey, string](maxOwnersKnown, nil)
	}
	id, ok := c.known.Get(key)
	c.mu.Unlock()
	if ok {
		return id, nil
	}
	f, err := s.ownersFile(ctx, in, at)
	if err != nil {
		return "", err
	}
	if f != nil {
		id = string(f.BlobID)
	}
	c.mu.Lock()
	c.known.Put(key, id, 1)
	c.mu.Unlock()
	return id, nil
}

// maxOwnersKnown is the maximum size of ownersCache; an entry takes about 200 bytes.
const maxOwnersKnown = 4000

// checkOwners updates the code owner rules, and then whether the merge request lacks
// approvals.
func (s *Service) checkOwners(ctx context.Context, in *project.Project, m *MergeRequest, target git.OID) error {
	synced, err := s.syncOwners(ctx, in, m, target)
	if err != nil || !synced {
		return err
	}
	return s.checkApprovals(ctx, []*MergeRequest{m}, map[int64]*project.Project{in.ID: in})
}

// readOwners parses the file CODEOWNERS.
func readOwners(ctx context.Context, f *repo.FileBlob) (*codeowners.File, error) {
	if f == nil {
		return &codeowners.File{}, nil
	}
	r, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, codeowners.MaxSize))
	if err != nil {
		return nil, err
	}
	return codeowners.Parse(string(text)), nil
}

// syncOwners creates the code owner rules from the file CODEOWNERS of the target
// branch and the changed files of the newest version, unless they are up to date. It
// reports whether it changed them.
func (s *Service) syncOwners(ctx context.Context, in *project.Project, m *MergeRequest, target git.OID) (bool, error) {
	if m.State != Opened || m.Version == nil || target == "" {
		return false, nil
	}
	file, err := s.ownersID(ctx, in, target)
	if err != nil {
		return false, fmt.Errorf("code owners of merge request %d: %w", m.ID, err)
	}
	version, last, err := findOwnersSync(ctx, s.DB, m.ID)
	switch {
	case errors.Is(err, db.ErrNoRows) && file == "":
		return false, nil
	case err != nil && !errors.Is(err, db.ErrNoRows):
		return false, fmt.Errorf("code owners of merge request %d: %w", m.ID, err)
	case err == nil && version == m.Version.ID && last == file:
		return false, nil
	}
	rules, err := s.ownerRules(ctx, in, m, target)
	if err != nil {
		return false, fmt.Errorf("code owners of merge request %d: %w", m.ID, err)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if _, err := lockRequest(ctx, tx, m.ID); err != nil {
			return err
		}
		if newest, err := newestVersion(ctx, tx, m.ID); err != nil || newest.ID != m.Version.ID {
			return err // the next read tries again
		}
		if err := deleteOwnerRules(ctx, tx, m.ID); err != nil {
			return err
		}
		for _, r := range rules {
			if err := insertRule(ctx, tx, r); err != nil {
				return err
			}
		}
		return saveOwnersSync(ctx, tx, m.ID, m.Version.ID, file)
	})
	if err != nil {
		return false, fmt.Errorf("code owners of merge request %d: %w", m.ID, err)
	}
	return true, nil
}

// ownerRules returns the code owner rules for the changed files.
func (s *Service) ownerRules(ctx context.Context, in *project.Project, m *MergeRequest, target git.OID) ([]*ApprovalRule, error) {
	f, err := s.ownersFile(ctx, in, target)
	if err != nil {
		return nil, err
	}
	file, err := readOwners(ctx, f)
	if err != nil || len(file.Sections) == 0 {
		return nil, err
	}
	paths, err := s.changedPaths(ctx, in, git.OID(m.Version.Base), git.OID(m.Version.Head))
	if err != nil {
		return nil, err
	}
	rules, err := s.entryRules(ctx, in, matching(file, paths))
	for _, r := range rules {
		r.RequestID, r.CreatedAt = &m.ID, s.Now()
	}
	return rules, err
}

// matching returns the entries that match any of the paths; all entries if the paths
// are nil, which means unknown.
func matching(file *codeowners.File, paths []string) []*codeowners.Entry {
	if paths != nil {
		return file.Matching(paths)
	}
	var all []*codeowners.Entry
	for _, section := range file.Sections {
		all = append(all, section.Entries...)
	}
	return slices.DeleteFunc(all, func(e *codeowners.Entry) bool { return e.Owners.Empty() })
}

// changedPaths returns the paths of the files that differ between two commits; nil
// if there are too many.
func (s *Service) changedPaths(ctx context.Context, in *project.Project, from, to git.OID) ([]string, error) {
	d, err := s.Repos.DiffOf(ctx, in, from, to, git.DiffOptions{MaxFiles: 1, MaxLines: 1})
	if err != nil {
		return nil, err
	}
	return pathsOf(d), nil
}

// pathsOf returns the old and new paths of the files of a diff; nil if there are
// too many.
func pathsOf(d *git.Diff) []string {
	if d.TimedOut || d.Cut {
		return nil
	}
	paths := []string{}
	for _, f := range d.Files {
		paths = append(paths, f.NewPath)
		if f.OldPath != f.NewPath {
			paths = append(paths, f.OldPath)
		}
	}
	return paths
}

// maxOwnedShown is the maximum number of files listed in the message to a rejected
// push.
const maxOwnedShown = 5

// CheckPush returns why an actor may not push a change to a branch that requires
// code owner approval: the change contains files that other users own. Optional
// sections are ignored.
func (s *Service) CheckPush(ctx context.Context, by actor.Actor, in *project.Project, r git.Repo, c *git.RefChange) (string, error) {
	f, err := s.ownersFile(ctx, in, c.Old)
	if err != nil || f == nil {
		return "", err
	}
	file, err := readOwners(ctx, f)
	if err != nil {
		return "", err
	}
	d, err := r.Diff(ctx, git.DiffOptions{From: string(c.Old), To: string(c.New), Straight: true, MaxFiles: 1, MaxLines: 1})
	if err != nil {
		return "", err
	}
	branch := strings.TrimPrefix(c.Ref, git.Heads)
	paths := pathsOf(d)
	owned, ok := file.OwnedPaths(paths)
	if paths == nil || !ok {
		return fmt.Sprintf("You cannot push so many changes to %s, because it requires the approval of code owners. Create a merge request.", branch), nil
	}
	others, err := s.ownedByOthers(ctx, by, in, owned)
	if err != nil || len(others) == 0 {
		return "", err
	}
	shown := strings.Join(others[:min(len(others), maxOwnedShown)], ", ")
	if more := len(others) - maxOwnedShown; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("You cannot push changes to files that have code owners to %s. Create a merge request, so that the owners can approve them. "+
		"Files that match %s: %s", branch, f.Path, shown), nil
}

// ownedByOthers returns the paths that match an entry of a required section that
// does not list the actor as an owner.
func (s *Service) ownedByOthers(ctx context.Context, by actor.Actor, in *project.Project, owned []codeowners.OwnedPath) ([]string, error) {
	var entries []*codeowners.Entry
	mine := map[*codeowners.Entry]bool{}
	for _, o := range owned {
		for _, e := range o.Entries {
			if _, known := mine[e]; !known && e.Section.Required() > 0 {
				mine[e], entries = false, append(entries, e)
			}
		}
	}
	rules, err := s.entryRules(ctx, in, entries)
	if err != nil {
		return nil, err
	}
	b := s.newEligibility(map[int64]*project.Project{in.ID: in})
	for _, r := range rules {
		b.expect(r, by.ID)
	}
	if err := b.load(ctx, s); err != nil {
		return nil, err
	}
	for i, e := range entries {
		mine[e] = slices.Contains(b.eligible(rules[i]), by.ID)
	}
	var others []string
	for _, o := range owned {
		if slices.ContainsFunc(o.Entries, func(e *codeowners.Entry) bool { return e.Section.Required() > 0 && !mine[e] }) {
			others = append(others, o.Path)
		}
	}
	return others, nil
}

// entryRules creates rules from entries of CODEOWNERS. Owners who do not exist are
// left out.
func (s *Service) entryRules(ctx context.Context, in *project.Project, entries []*codeowners.Entry) ([]*ApprovalRule, error) {
	var names, emails []string
	for _, e := range entries {
		names, emails = append(names, e.Owners.Names...), append(emails, e.Owners.Emails...)
	}
	slices.Sort(names)
	slices.Sort(emails)
	users, groups, err := s.Projects.NamedOwners(ctx, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	byEmail, err := s.Users.FindByEmails(ctx, slices.Compact(emails))
	if err != nil {
		return nil, err
	}
	levels := map[string]project.Level{"developer": project.Developer, "maintainer": project.Maintainer, "owner": project.Owner}
	var list []*ApprovalRule
	for _, e := range entries {
		r := &ApprovalRule{ProjectID: in.ID, Type: CodeOwner, Name: e.Pattern, Section: e.Section.Name, Required: e.Section.Required()}
		for _, name := range e.Owners.Names {
			if id, ok := users[strings.ToLower(name)]; ok {
				r.userIDs = append(r.userIDs, id)
			} else if id, ok := groups[strings.ToLower(name)]; ok {
				r.groupIDs = append(r.groupIDs, id)
			}
		}
		for _, email := range e.Owners.Emails {
			if u := byEmail[email]; u != nil {
				r.userIDs = append(r.userIDs, u.ID)
			}
		}
		for _, role := range e.Owners.Roles {
			r.roles = append(r.roles, levels[role])
		}
		for _, ids := range []*[]int64{&r.userIDs, &r.groupIDs} {
			slices.Sort(*ids)
			*ids = slices.Compact(*ids)
		}
		list = append(list, r)
	}
	return list, nil
}

// ownersPushed returns the approvers who own files that changed between two heads of
// a merge request, if the project removes their approvals on push. nil means all
// approvers.
func (s *Service) ownersPushed(ctx context.Context, in *project.Project, m *MergeRequest, v *Version) ([]int64, error) {
	none := []int64{}
	if !in.MergeSettings().Approvals.SelectiveRemovals || in.MergeSettings().Approvals.ResetOnPush || v.was == "" || v.was == v.Head || v.Start == "" {
		return none, nil
	}
	f, err := s.ownersFile(ctx, in, git.OID(v.Start))
	if err != nil || f == nil {
		return none, err
	}
	file, err := readOwners(ctx, f)
	if err != nil {
		return none, err
	}
	paths, err := s.changedPaths(ctx, in, git.OID(v.was), git.OID(v.Head))
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil // the previous head no longer exists
	}
	if err != nil {
		return none, err
	}
	rules, err := s.entryRules(ctx, in, matching(file, paths))
	if err != nil {
		return none, err
	}
	given, err := findApprovals(ctx, s.DB, []int64{m.ID})
	if err != nil {
		return none, err
	}
	b := s.newEligibility(map[int64]*project.Project{in.ID: in})
	for _, r := range rules {
		b.expect(r, approversOf(given)...)
	}
	if err := b.load(ctx, s); err != nil {
		return none, err
	}
	for _, r := range rules {
		none = append(none, b.named(r)...)
	}
	return slices.DeleteFunc(approversOf(given), func(id int64) bool { return !slices.Contains(none, id) }), nil
}

// maxCommitters is the maximum number of commits of a version whose committers are
// read.
const maxCommitters = 10_000

// committersOf returns the users who committed to a version. commits are its newest
// commits, up to maxRead.
func (s *Service) committersOf(ctx context.Context, in *project.Project, v *Version, commits []*git.Commit) ([]int64, error) {
	emails := map[string]bool{}
	for offset := 0; len(commits) > 0 && offset < maxCommitters; {
		for _, c := range commits {
			emails[strings.ToLower(c.Committer.Email)] = true
		}
		if len(commits) < maxRead {
			break
		}
		offset += len(commits)
		page, err := s.Repos.CommitsOf(ctx, in, git.OID(v.Base), git.OID(v.Head), db.Paging{Limit: 1000, Offset: offset})
		if err != nil {
			return nil, err
		}
		commits = page.Items
	}
	var list []string
	for email := range emails {
		list = append(list, email)
	}
	users, err := s.Users.FindByEmails(ctx, list)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, u := range users {
		ids = append(ids, u.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// FileOwners are the code owners of a file according to one entry of CODEOWNERS.
type FileOwners struct {
	Section string
	Pattern string
	Users   []*user.User
	Groups  []*project.Namespace // only groups that the actor can see
	Roles   []project.Level
}

// CodeOwners returns the code owners of a file in a commit and the path of the
// CODEOWNERS file of that commit, for users who can read the code. The path is empty
// if there is none. NotFound.
func (s *Service) CodeOwners(ctx context.Context, by actor.Actor, ref project.Ref, commit git.OID, path string) (in string, list []FileOwners, err error) {
	p, err := s.Projects.ReadCode(ctx, by, ref)
	if err != nil {
		return "", nil, err
	}
	f, err := s.ownersFile(ctx, p, commit)
	if err != nil || f == nil {
		return "", nil, err
	}
	file, err := readOwners(ctx, f)
	if err != nil {
		return "", nil, fmt.Errorf("code owners: %w", err)
	}
	rules, err := s.entryRules(ctx, p, file.Owning(path))
	if err != nil {
		return "", nil, err
	}
	if err := s.fillRules(ctx, by, p, rules...); err != nil {
		return "", nil, err
	}
	for _, r := range rules {
		list = append(list, FileOwners{Section: r.Section, Pattern: r.Name, Users: r.Users, Groups: r.Groups, Roles: r.roles})
	}
	return f.Path, list, nil
}
