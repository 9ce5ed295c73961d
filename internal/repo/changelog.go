package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/git/trailer"
	"svc/internal/project"
	"svc/internal/repo/changelog"
	"svc/internal/semver"
)

// ChangelogOptions selects the changes of a changelog.
type ChangelogOptions struct {
	Version string // a semantic version
	// From is the start of the range, exclusive; default: the tag of the last
	// release before the version.
	From    string
	To      string    // end of the range; default: the default branch
	Date    time.Time // of the release; default: now
	Trailer string    // required trailer of commits; its value is their category

	ConfigFiles []string // the first that exists is used
	ConfigRef   string   // their revision; default: the default branch
	Site        string   // base URL of links
}

// maxChangelogCommits is the maximum number of commits in the range.
const maxChangelogCommits = 15_000

// Changelog returns the section of a version in Markdown, for users who may
// read the repository. Unprocessable with the reason if it cannot be created.
func (s *Service) Changelog(ctx context.Context, by actor.Actor, ref project.Ref, o ChangelogOptions) (string, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return "", err
	}
	return s.section(ctx, by, p, r, o)
}

// ChangelogCommit is where a changelog section is committed.
type ChangelogCommit struct {
	Branch  string // default: the default branch
	File    string
	Message string
}

// CommitChangelog adds the section of a version to a file on a branch, for
// users who may push to it. A file that already has the section is not changed.
// The errors are those of Changelog; Forbidden if the actor may not push to the
// branch; Conflict if the branch keeps moving.
func (s *Service) CommitChangelog(ctx context.Context, by actor.Actor, ref project.Ref, o ChangelogOptions, c ChangelogCommit) error {
	p, r, err := s.write(ctx, by, ref)
	if err != nil {
		return err
	}
	if c.Branch == "" {
		c.Branch = p.DefaultBranch
	}
	if o.To == "" {
		o.To = git.Heads + c.Branch
	}
	if _, err := s.branchTip(ctx, r, c.Branch); err != nil {
		return err
	}
	section, err := s.section(ctx, by, p, seen(by, p, r), o)
	if err != nil {
		return err
	}
	const tries = 3
	for range tries {
		err = s.addChangelog(ctx, by, p, r, o.Version, section, c)
		if !errs.Is(err, errs.KindConflict) { // on a conflict, try again on top of the new commit
			return err
		}
	}
	return err
}

func (s *Service) branchTip(ctx context.Context, r git.Repo, branch string) (git.Ref, error) {
	tip, err := r.Ref(ctx, git.Heads+branch)
	if errs.Is(missing(err, ""), errs.KindNotFound) {
		return tip, changelog.Failure("the branch %.100s could not be found", branch)
	}
	return tip, passing(err)
}

func (s *Service) addChangelog(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, version, section string, c ChangelogCommit) error {
	tip, err := s.branchTip(ctx, r, c.Branch)
	if err != nil {
		return err
	}
	action := git.Action{Kind: git.Modify, Path: strings.Trim(c.File, "/")}
	old, err := readChangelog(ctx, r, tip.ID, action.Path)
	if errors.Is(err, git.ErrNotFound) {
		action.Kind, err = git.Create, nil
	}
	if err != nil || changelog.HasSection(old, version) {
		return err
	}
	action.Content = []byte(changelog.AddSection(old, version, section))
	who := s.signature(by)
	made, err := r.CommitChanges(ctx, git.ChangeOptions{
		Parent: string(tip.ID), Actions: []git.Action{action}, Author: who, Committer: who, Message: c.Message,
	})
	switch {
	case errors.Is(err, git.ErrBadPath), errors.Is(err, git.ErrExists), errors.Is(err, git.ErrNotFound):
		return changelog.Failure("%.200s is not a valid file name", c.File).Because(err)
	case err != nil:
		return fmt.Errorf("commit changelog of project %d: %w", p.ID, passing(err))
	}
	return s.move(ctx, by, p, r, git.Update{Ref: git.Heads + c.Branch, Old: tip.ID, New: made.ID})
}

// maxChangelogFile is the maximum size of the file.
const maxChangelogFile = 16 << 20

// readChangelog reads the changelog file; git.ErrNotFound if there is none.
func readChangelog(ctx context.Context, r git.Repo, at git.OID, path string) (string, error) {
	e, err := r.Entry(ctx, string(at), path)
	switch {
	case errors.Is(err, git.ErrBadPath) || path == "":
		return "", changelog.Failure("%.200s is not a valid file name", path)
	case errors.Is(err, git.ErrNotFound):
		return "", git.ErrNotFound
	case err != nil:
		return "", passing(err)
	case e.Type != git.TypeBlob || e.Mode == "120000":
		return "", changelog.Failure("%.200s is not a file", path)
	}
	file, err := r.Open(ctx, e.OID)
	if err != nil {
		return "", passing(err)
	}
	defer file.Close()
	if file.Size > maxChangelogFile {
		return "", changelog.Failure("%.200s is larger than %d bytes", path, maxChangelogFile)
	}
	text, err := io.ReadAll(file)
	return string(text), err
}

// section returns the section of a version.
func (s *Service) section(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, o ChangelogOptions) (string, error) {
	config, err := s.changelogConfig(ctx, p, r, o)
	if err != nil {
		return "", err
	}
	commits, err := s.changelogCommits(ctx, p, r, config, o)
	if err != nil {
		return "", err
	}
	authors, err := s.authors(ctx, by, p, config, commits)
	if err != nil {
		return "", err
	}
	at := o.Date
	if at.IsZero() {
		at = s.Now()
	}
	made := changelog.NewRelease(o.Version, at.UTC(), config)
	for _, c := range commits {
		entry := map[string]any{"title": c.Title, "commit": map[string]any{
			"reference": p.FullPath + "@" + string(c.ID), "web_url": o.Site + "/" + p.FullPath + "/-/commit/" + string(c.ID), "trailers": c.trailers,
		}}
		if author := authors[strings.ToLower(c.Author.Email)]; author != nil {
			entry["author"] = author
		}
		made.Add(c.category, entry)
	}
	return made.Markdown()
}

// changelogCommit is a commit of a changelog.
type changelogCommit struct {
	*git.Commit
	category string
	trailers map[string]any
}

// changelogCommits returns the commits with the trailer, newest first. Commits
// that are reverted in the same range are left out.
func (s *Service) changelogCommits(ctx context.Context, p *project.Project, r git.Repo, c *changelog.Config, o ChangelogOptions) ([]changelogCommit, error) {
	from, err := s.changelogStart(ctx, r, c, o)
	if err != nil {
		return nil, err
	}
	to, err := s.commitAt(ctx, p, r, o.To)
	if errs.Is(missing(err, ""), errs.KindNotFound) {
		return nil, changelog.Failure("the end of the range could not be found")
	}
	if err != nil {
		return nil, passing(err)
	}
	ids, err := r.LogIDs(ctx, git.LogOptions{From: []string{string(to)}, Not: []string{string(from)}, Limit: maxChangelogCommits + 1})
	if err != nil {
		return nil, passing(err)
	}
	if len(ids) > maxChangelogCommits {
		return nil, changelog.Failure("the range has more than %d commits", maxChangelogCommits)
	}
	var list []changelogCommit
	undone := map[git.OID]bool{}
	for part := range slices.Chunk(ids, 500) {
		commits, err := r.Commits(ctx, part)
		if err != nil {
			return nil, passing(err)
		}
		for _, commit := range commits {
			if undone[commit.ID] {
				continue
			}
			if m := revertLine.FindStringSubmatch(commit.Message); m != nil {
				undone[git.OID(m[1])] = true
			}
			if found, ok := withTrailer(commit, o.Trailer); ok {
				list = append(list, found)
			}
		}
	}
	return list, nil
}

// revertLine matches the line that git revert adds to the message.
var revertLine = regexp.MustCompile(`This reverts commit ([0-9a-f]{40})`)

func withTrailer(c *git.Commit, key string) (changelogCommit, bool) {
	found := changelogCommit{Commit: c, trailers: map[string]any{}}
	for _, t := range trailer.Parse(c.Message) {
		found.trailers[t.Key] = t.Value
		if t.Key == key {
			found.category = t.Value
		}
	}
	return found, found.category != ""
}

// changelogStart returns the start of the range.
func (s *Service) changelogStart(ctx context.Context, r git.Repo, c *changelog.Config, o ChangelogOptions) (git.OID, error) {
	rev := o.From
	if rev == "" {
		own, _ := semver.Parse(o.Version)
		tag, err := lastRelease(ctx, r, c.Tags, own)
		if err != nil {
			return "", err
		}
		if tag == "" {
			return "", changelog.Failure("The commit start range is unspecified, and no previous tag could be found to use instead")
		}
		rev = tag
	}
	from, err := r.ResolveCommit(ctx, rev)
	if errs.Is(missing(err, ""), errs.KindNotFound) {
		return "", changelog.Failure("the start of the range could not be found")
	}
	return from, passing(err)
}

// lastRelease returns the tag of the highest version below a version, without
// prereleases; empty if there is none.
func lastRelease(ctx context.Context, r git.Repo, pattern *regexp.Regexp, below semver.Version) (string, error) {
	tags, err := r.Refs(ctx, git.RefOptions{Place: git.Tags, Match: pattern.MatchString})
	if errors.Is(err, git.ErrNoRepository) {
		return "", nil
	}
	if err != nil {
		return "", passing(err)
	}
	var best semver.Version
	name := ""
	for _, tag := range tags {
		v, ok := semver.ParseBy(pattern, tag.Short())
		if !ok || v.Pre != "" || v.Compare(below) >= 0 {
			continue
		}
		if name == "" || v.Compare(best) > 0 {
			best, name = v, tag.Name
		}
	}
	return name, nil
}

// changelogConfig reads the first configuration file that exists at a revision;
// without one it returns the defaults.
func (s *Service) changelogConfig(ctx context.Context, p *project.Project, r git.Repo, o ChangelogOptions) (*changelog.Config, error) {
	at, err := s.commitAt(ctx, p, r, o.ConfigRef)
	if err != nil {
		if o.ConfigRef != "" && errs.Is(missing(err, ""), errs.KindNotFound) {
			return nil, changelog.Failure("the ref %.100s of the configuration could not be found", o.ConfigRef)
		}
		return changelog.Parse(nil)
	}
	for _, name := range o.ConfigFiles {
		e, err := r.Entry(ctx, string(at), name)
		if errs.Is(missing(err, ""), errs.KindNotFound) {
			continue
		}
		if err != nil {
			return nil, passing(err)
		}
		if e.Type != git.TypeBlob {
			continue
		}
		file, err := r.Object(ctx, e.OID)
		if errors.Is(err, git.ErrTooLarge) {
			return nil, changelog.Failure("the configuration in %.200s is larger than %d bytes", name, git.MaxObject)
		}
		if err != nil {
			return nil, passing(err)
		}
		return changelog.Parse(file.Content)
	}
	return changelog.Parse(nil)
}
