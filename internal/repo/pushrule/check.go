package pushrule

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

// Check applies the push rule of the project to the refs and the new
// commits of a push. It implements repo.PushCheck.
func (s *Service) Check(ctx context.Context, by actor.Actor, p *project.Project, push *git.Push) error {
	if by.ID == actor.SystemID {
		return nil
	}
	rule, err := ofProject.find(ctx, s.DB, p.ID)
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find push rule: %w", err)
	}
	c, err := newInspector(s, by, p, rule.Rules)
	if err != nil {
		return fmt.Errorf("push rule of project %d: %w", p.ID, err)
	}
	var open, notes []*git.RefChange
	for _, change := range push.Changes {
		note := strings.HasPrefix(change.Ref, repo.NoteRefs)
		if change.Refused == "" && !note {
			change.Refused = c.ref(change)
		}
		switch {
		case change.Refused != "" || change.New == git.ZeroOID:
		case note:
			notes = append(notes, change)
		default:
			open = append(open, change)
		}
	}
	if err := c.inspect(ctx, push.Repo, open); err != nil || len(notes) == 0 {
		return err
	}
	// git creates the commits of notes itself, so the rules for commits do not apply.
	of := Rules{MaxFileSize: rule.MaxFileSize, FileName: rule.FileName, PreventSecrets: rule.PreventSecrets}
	if c, err = newInspector(s, by, p, of); err != nil {
		return fmt.Errorf("push rule of project %d: %w", p.ID, err)
	}
	return c.inspect(ctx, push.Repo, notes)
}

// fewChanges is the maximum number of refs that are checked one by one after a
// violation was found.
const fewChanges = 16

// inspect refuses the changes with a commit or file that is not allowed. It
// first checks all changes together, because usually there is no violation.
func (c *inspector) inspect(ctx context.Context, r git.Repo, changes []*git.RefChange) error {
	why, err := c.walk(ctx, r, changes)
	if err != nil || why == "" {
		return err
	}
	for _, change := range changes {
		change.Refused = why
		if len(changes) == 1 || len(changes) > fewChanges {
			continue
		}
		if change.Refused, err = c.walk(ctx, r, []*git.RefChange{change}); err != nil {
			return err
		}
	}
	return nil
}

// objection is an error with a reason for the user. It stops a walk.
type objection string

func (o objection) Error() string { return string(o) }

func (c *inspector) walk(ctx context.Context, r git.Repo, changes []*git.RefChange) (string, error) {
	if len(changes) == 0 {
		return "", nil
	}
	ids := make([]git.OID, len(changes))
	for i, change := range changes {
		ids[i] = change.New
	}
	var err error
	if c.looksAtCommits() {
		err = r.NewCommits(ctx, ids, func(commit *git.Commit) error { return c.commit(ctx, commit) })
	}
	if err == nil && c.looksAtFiles() {
		err = r.NewPaths(ctx, ids, c.file)
	}
	if err == nil && c.rules.MaxFileSize > 0 {
		err = r.NewObjects(ctx, ids, c.size)
	}
	if why, ok := errors.AsType[objection](err); ok {
		return string(why), nil
	}
	if err != nil {
		return "", fmt.Errorf("look at new commits: %w", err)
	}
	return "", nil
}

// inspector checks a push against a push rule.
type inspector struct {
	service *Service
	by      actor.Actor
	project *project.Project
	rules   Rules

	message, forbidden, branch, email, name *regexp.Regexp
	owners                                  map[string]int64 // cached user IDs by email address
}

func newInspector(s *Service, by actor.Actor, p *project.Project, rules Rules) (*inspector, error) {
	c := &inspector{service: s, by: by, project: p, rules: rules, owners: map[string]int64{}}
	for _, one := range []struct {
		to   **regexp.Regexp
		text string
		mode string
	}{
		{&c.message, rules.CommitMessage, "(?m)"}, {&c.forbidden, rules.CommitMessageNegative, "(?m)"},
		{&c.branch, rules.BranchName, ""}, {&c.email, rules.AuthorEmail, ""}, {&c.name, rules.FileName, ""},
	} {
		if one.text == "" {
			continue
		}
		pattern, err := regexp.Compile(one.mode + one.text)
		if err != nil {
			return nil, err
		}
		*one.to = pattern
	}
	return c, nil
}

// ref applies the rules for refs.
func (c *inspector) ref(change *git.RefChange) string {
	branch, isBranch := strings.CutPrefix(change.Ref, git.Heads)
	switch {
	case !isBranch && change.New == git.ZeroOID && c.rules.DenyDeleteTag:
		return "You cannot delete a tag"
	case isBranch && change.Old == git.ZeroOID && c.branch != nil && branch != c.project.DefaultBranch && !c.branch.MatchString(branch):
		return fmt.Sprintf("Branch name '%s' does not follow the pattern '%s'", branch, c.rules.BranchName)
	}
	return ""
}

func (c *inspector) looksAtCommits() bool {
	r := c.rules
	return c.message != nil || c.forbidden != nil || c.email != nil || r.MemberCheck || r.CommitterCheck || r.CommitterNameCheck ||
		r.RejectUnsigned || r.RejectNonDCO
}

func (c *inspector) looksAtFiles() bool {
	return c.name != nil || c.rules.PreventSecrets
}

// signedOff matches the sign-off line of a commit message.
var signedOff = regexp.MustCompile(`(?m)^Signed-off-by: .+ <\S+@\S+>\s*$`)

func (c *inspector) commit(ctx context.Context, m *git.Commit) error {
	merge := len(m.ParentIDs) > 1
	switch {
	case c.message != nil && !c.message.MatchString(m.Message):
		return objection(fmt.Sprintf("Commit message does not follow the pattern '%s'", c.rules.CommitMessage))
	case c.forbidden != nil && c.forbidden.MatchString(m.Message):
		return objection(fmt.Sprintf("Commit message contains the forbidden pattern '%s'", c.rules.CommitMessageNegative))
	case c.rules.RejectNonDCO && !signedOff.MatchString(m.Message):
		return objection("Commit message must contain a DCO signoff")
	case c.email != nil && !c.email.MatchString(m.Author.Email):
		return objection(fmt.Sprintf("Author's commit email '%s' does not follow the pattern '%s'", m.Author.Email, c.rules.AuthorEmail))
	case c.email != nil && !c.email.MatchString(m.Committer.Email):
		return objection(fmt.Sprintf("Committer's commit email '%s' does not follow the pattern '%s'", m.Committer.Email, c.rules.AuthorEmail))
	case c.rules.RejectUnsigned && !m.Signed:
		return objection("Commit must be signed with a GPG key")
	case c.rules.CommitterNameCheck && !merge && m.Author.Name != c.by.Name:
		return objection("Your git username is inconsistent with the name of your account")
	}
	return c.authors(ctx, m)
}

// authors applies the rules for authors and committers.
func (c *inspector) authors(ctx context.Context, m *git.Commit) error {
	if c.rules.MemberCheck {
		for _, who := range []git.Signature{m.Author, m.Committer} {
			id, err := c.owner(ctx, who.Email)
			if err != nil {
				return err
			}
			if id == 0 {
				return objection(fmt.Sprintf("Author '%s' is not a member of team", who.Email))
			}
		}
	}
	if c.rules.CommitterCheck {
		id, err := c.owner(ctx, m.Committer.Email)
		if err != nil {
			return err
		}
		if id == 0 || !c.by.Is(id) {
			return objection(fmt.Sprintf("You cannot push commits for '%s'. You can only push commits if the committer email is one of your own verified emails.", m.Committer.Email))
		}
	}
	return nil
}

// owner returns the user ID of an email address, and caches it.
func (c *inspector) owner(ctx context.Context, email string) (int64, error) {
	if email == c.by.CommitEmail && email != c.by.Email {
		return c.by.ID, nil // a confirmed address, or the private commit email, which is not stored
	}
	if id, ok := c.owners[email]; ok {
		return id, nil
	}
	id, err := ownerOf(ctx, c.service.DB, email)
	if err != nil {
		return 0, fmt.Errorf("find owner of an address: %w", err)
	}
	if len(c.owners) < 10_000 { // bounds the memory for histories with many authors
		c.owners[email] = id
	}
	return id, nil
}

// secretNames are files that usually hold keys or passwords.
var secretNames = []*regexp.Regexp{
	regexp.MustCompile(`aws/credentials$`),
	regexp.MustCompile(`(ssh|config)/(personal|server)_(rsa|dsa|ed\d+|ecdsa)$`),
	regexp.MustCompile(`id_(rsa|dsa|ed25519|ecdsa)$`),
	regexp.MustCompile(`\.(pem|key)$`),
	regexp.MustCompile(`(^|[._])(bash|zsh|mysql|psql|irb)?_?history$`),
	regexp.MustCompile(`(^|/)\.(netrc|pgpass|htpasswd)$`),
}

func (c *inspector) file(name string) error {
	base := name[strings.LastIndexByte(name, '/')+1:]
	if c.name != nil && (c.name.MatchString(name) || c.name.MatchString(base)) {
		return objection(fmt.Sprintf("File name %s was prohibited by the pattern '%s'.", name, c.rules.FileName))
	}
	if !c.rules.PreventSecrets {
		return nil
	}
	for _, pattern := range secretNames {
		if pattern.MatchString(name) {
			return objection(fmt.Sprintf("File name %s was prohibited: such files usually hold secrets.", name))
		}
	}
	return nil
}

func (c *inspector) size(o git.NewObject) error {
	if limit := c.rules.MaxFileSize; o.Type == git.TypeBlob && o.Size > limit<<20 {
		return objection(fmt.Sprintf("File %q is larger than the allowed size of %d MiB. Use Git LFS to manage this file.", o.Path, limit))
	}
	return nil
}
