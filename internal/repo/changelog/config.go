// Package changelog generates a section of a changelog from changes, as configured by a
// project. The format is described at
// https://docs.gitlab.com/user/project/changelogs/.
package changelog

import (
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"

	"svc/internal/errs"
	"svc/internal/re2"
	"svc/internal/semver"
)

// Config is the changelog configuration of a project.
type Config struct {
	dateFormat string // a strftime format
	template   *template
	Tags       *regexp.Regexp // matches the version in a tag name
	Groups     []string       // groups whose members are always credited
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

// Failure is the error for a changelog that cannot be created, with
// the reason.
func Failure(format string, args ...any) *errs.Error {
	return errs.Unprocessable("Failed to generate the changelog: %s", fmt.Sprintf(format, args...))
}

// Parse parses a configuration file. The error is a
// Failure.
func Parse(text []byte) (*Config, error) {
	var file struct {
		DateFormat string    `yaml:"date_format"`
		Template   string    `yaml:"template"`
		TagRegex   string    `yaml:"tag_regex"`
		Groups     []string  `yaml:"include_groups"`
		Categories yaml.Node `yaml:"categories"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, Failure("the configuration cannot be read: %.300s", err)
	}
	c := &Config{dateFormat: "%Y-%m-%d", titles: map[string]string{}}
	if file.DateFormat != "" {
		c.dateFormat = file.DateFormat
	}
	if file.Template == "" {
		file.Template = sectionTemplate
	}
	var err error
	if c.template, err = parseTemplate(file.Template); err != nil {
		return nil, Failure("%v", err)
	}
	if file.TagRegex == "" {
		file.TagRegex = semver.Pattern
	}
	if len(file.TagRegex) > 1000 {
		return nil, Failure("the tag_regex is longer than 1000 bytes")
	}
	if c.Tags, err = re2.Compile(file.TagRegex); err != nil {
		return nil, Failure("the tag_regex is invalid: %.300s", err)
	}
	if len(file.Groups) > 100 {
		return nil, Failure("include_groups names more than 100 groups")
	}
	c.Groups = file.Groups
	return c, c.readCategories(&file.Categories)
}

// readCategories reads the categories in the order of the file, which is the
// order of the sections.
func (c *Config) readCategories(n *yaml.Node) error {
	if n.Kind == 0 || n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return Failure("categories has to name a title for each category")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, title := n.Content[i], n.Content[i+1]
		if name.Kind != yaml.ScalarNode || title.Kind != yaml.ScalarNode {
			return Failure("categories has to name a title for each category")
		}
		c.titles[name.Value] = title.Value
		c.order = append(c.order, title.Value)
	}
	return nil
}

// title returns the title of a category.
func (c *Config) title(category string) string {
	if title := c.titles[category]; title != "" {
		return title
	}
	return category
}
