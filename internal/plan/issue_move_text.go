package plan

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"svc/internal/actor"
	"svc/internal/markup"
	"svc/internal/project"
)

// CopyUploads copies uploaded files of a project to another project and returns the new
// secrets by the old ones. Secrets without a file are left out. TooLarge.
type CopyUploads func(ctx context.Context, fromProject, toProject int64, secrets []string) (map[string]string, error)

// OnCopyUploads registers a CopyUploads. It is called at startup.
func (s *Service) OnCopyUploads(f CopyUploads) { s.copyUploads = f }

// upload matches the path of an uploaded file in a text.
var upload = regexp.MustCompile(`/uploads/([0-9a-f]{32})/`)

// maxRewritten is the size of the texts of an issue that are adapted to another project.
// Comments beyond it are copied unchanged.
const maxRewritten = 8 << 20

// noteText is the text of notes in a discussion, and the text of their copies.
type noteText struct{ discussion, body, copied string }

// copiedTexts are the texts of an issue that its copy in another project has in another
// form.
type copiedTexts struct {
	description, copied string
	notes               []noteText // of which the texts differ
}

// of returns the description of the copy.
func (c *copiedTexts) of(description string) string {
	if description == c.description { // otherwise it has just been changed
		return c.copied
	}
	return description
}

// textsFor adapts the texts of an issue to another project: uploaded files are copied,
// and references to objects of the old project name that project. It parses Markdown
// and copies files, so it must not be called in a transaction. TooLarge.
func (s *Service) textsFor(ctx context.Context, by actor.Actor, i *Issue, from, to *project.Project, notes bool) (*copiedTexts, error) {
	c := &copiedTexts{description: i.Description, copied: i.Description}
	if from.ID == to.ID {
		return c, nil
	}
	if notes {
		var err error
		if c.notes, err = findNoteTexts(ctx, s.DB, i.Target(), maxRewritten); err != nil {
			return nil, fmt.Errorf("texts of notes: %w", err)
		}
	}
	secrets, err := s.copiedSecrets(ctx, c, from.ID, to.ID)
	if err != nil {
		return nil, err
	}
	r := reader{s: s, ctx: ctx, by: by, known: map[string]*project.Project{"": from}, found: map[markup.Reference]*markup.Target{}}
	adapt := func(text string) (string, error) {
		adapted, err := markup.Rewrite(ctx, text, r.qualify)
		if err != nil {
			return "", fmt.Errorf("references of a text: %w", err)
		}
		adapted = upload.ReplaceAllStringFunc(adapted, func(path string) string {
			if secret := secrets[upload.FindStringSubmatch(path)[1]]; secret != "" {
				return "/uploads/" + secret + "/"
			}
			return path
		})
		if len(adapted) > MaxText {
			return text, nil
		}
		return adapted, nil
	}
	if c.copied, err = adapt(c.description); err != nil {
		return nil, err
	}
	changed := c.notes[:0]
	for _, n := range c.notes {
		if n.copied, err = adapt(n.body); err != nil {
			return nil, err
		}
		if n.copied != n.body {
			changed = append(changed, n)
		}
	}
	c.notes = changed
	return c, nil
}

// copiedSecrets copies the uploaded files that the texts link to.
func (s *Service) copiedSecrets(ctx context.Context, c *copiedTexts, from, to int64) (map[string]string, error) {
	var secrets []string
	seen := map[string]bool{}
	add := func(text string) {
		for _, match := range upload.FindAllStringSubmatch(text, -1) {
			if secret := match[1]; !seen[secret] {
				seen[secret], secrets = true, append(secrets, secret)
			}
		}
	}
	add(c.description)
	for _, n := range c.notes {
		add(n.body)
	}
	if len(secrets) == 0 || s.copyUploads == nil {
		return nil, nil
	}
	return s.copyUploads(ctx, from, to, secrets)
}

// qualify returns references of the project as texts of another project write them. It
// leaves out those that do not exist for the reader or are the same everywhere.
func (r *reader) qualify(refs []markup.Reference) (map[markup.Reference]string, error) {
	found, err := r.resolve(refs)
	texts := map[markup.Reference]string{}
	for ref, target := range found {
		if ref.Kind == markup.Label {
			// Another project has labels of the same name, but not of the same ID.
			if strings.Trim(ref.Name, "0123456789") == "" && target.Text != ref.Name && !strings.Contains(target.Text, `"`) {
				texts[ref] = `~"` + target.Text + `"`
			}
			continue
		}
		sign := map[markup.Kind]string{markup.Issue: "#", markup.MergeRequest: "!", markup.Snippet: "$", markup.Commit: "@"}[ref.Kind]
		if p := r.known[ref.Project]; sign != "" && p != nil && !strings.Contains(ref.Project, "/") {
			texts[ref] = p.FullPath + sign + ref.Name
		}
	}
	return texts, err
}
