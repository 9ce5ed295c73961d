package repo

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// changelogConfig is the changelog configuration of a project.
type changelogConfig struct {
	dateFormat string // a strftime format
	template   *template
	tags       *regexp.Regexp // matches the version in a tag name
	groups     []project.Ref  // groups whose members are always credited
	titles     map[string]string
	order      []string // titles in the order of the file
}

// sectionTemplate is the default template.
const sectionTemplate = `{% if categories %}
{% each categories %}
### {{ title }} ({% if single_change %}1 change{% else %}{{ count }} changes{% end %})

{% each entries %}
- [{{ title }}]({{ commit.web_url }})\
{% if author.credit %} by {{ author.reference }}{% end %}\
{% if merge_request %} ([merge request]({{ merge_request.web_url }})){% end %}

{% end %}

{% end %}
{% else %}
No changes.
{% end %}
`

// changelogFailure is the error for a changelog that cannot be created, with
// the reason.
func changelogFailure(format string, args ...any) *errs.Error {
	return errs.Unprocessable("Failed to generate the changelog: %s", fmt.Sprintf(format, args...))
}

// changelogConfig reads the first configuration file that exists at a revision;
// without one it returns the defaults.
func (s *Service) changelogConfig(ctx context.Context, p *project.Project, r git.Repo, o ChangelogOptions) (*changelogConfig, error) {
	at, err := s.commitAt(ctx, p, r, o.ConfigRef)
	if err != nil {
		if o.ConfigRef != "" && errs.Is(missing(err, ""), errs.KindNotFound) {
			return nil, changelogFailure("the ref %.100s of the configuration could not be found", o.ConfigRef)
		}
		return parseChangelogConfig(nil)
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
			return nil, changelogFailure("the configuration in %.200s is larger than %d bytes", name, git.MaxObject)
		}
		if err != nil {
			return nil, passing(err)
		}
		return parseChangelogConfig(file.Content)
	}
	return parseChangelogConfig(nil)
}

// parseChangelogConfig parses a configuration file. The error is a
// changelogFailure.
func parseChangelogConfig(text []byte) (*changelogConfig, error) {
	var file struct {
		DateFormat string    `yaml:"date_format"`
		Template   string    `yaml:"template"`
		TagRegex   string    `yaml:"tag_regex"`
		Groups     []string  `yaml:"include_groups"`
		Categories yaml.Node `yaml:"categories"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, changelogFailure("the configuration cannot be read: %.300s", err)
	}
	c := &changelogConfig{dateFormat: "%Y-%m-%d", titles: map[string]string{}}
	if file.DateFormat != "" {
		c.dateFormat = file.DateFormat
	}
	if file.Template == "" {
		file.Template = sectionTemplate
	}
	var err error
	if c.template, err = parseTemplate(file.Template); err != nil {
		return nil, changelogFailure("%v", err)
	}
	if file.TagRegex == "" {
		file.TagRegex = tagPattern
	}
	if len(file.TagRegex) > 1000 {
		return nil, changelogFailure("the tag_regex is longer than 1000 bytes")
	}
	if c.tags, err = regexp.Compile(file.TagRegex); err != nil {
		return nil, changelogFailure("the tag_regex is invalid: %.300s", err)
	}
	if len(file.Groups) > 100 {
		return nil, changelogFailure("include_groups names more than 100 groups")
	}
	for _, path := range file.Groups {
		c.groups = append(c.groups, project.Ref(path))
	}
	return c, c.readCategories(&file.Categories)
}

// readCategories reads the categories in the order of the file, which is the
// order of the sections.
func (c *changelogConfig) readCategories(n *yaml.Node) error {
	if n.Kind == 0 || n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return changelogFailure("categories has to name a title for each category")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, title := n.Content[i], n.Content[i+1]
		if name.Kind != yaml.ScalarNode || title.Kind != yaml.ScalarNode {
			return changelogFailure("categories has to name a title for each category")
		}
		c.titles[name.Value] = title.Value
		c.order = append(c.order, title.Value)
	}
	return nil
}

// title returns the title of a category.
func (c *changelogConfig) title(category string) string {
	if title := c.titles[category]; title != "" {
		return title
	}
	return category
}
