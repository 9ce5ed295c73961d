package changelog

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"svc/internal/semver"
)

// Release is the set of changes of a version.
type Release struct {
	version string
	at      time.Time
	config  *Config
	entries map[string][]any // by category title
	order   []string         // titles in order
}

func NewRelease(version string, at time.Time, c *Config) *Release {
	r := &Release{version: version, at: at, config: c, entries: map[string][]any{}}
	for _, title := range c.order {
		if !slices.Contains(r.order, title) {
			r.order = append(r.order, title)
		}
	}
	return r
}

func (r *Release) Add(category string, entry map[string]any) {
	title := r.config.title(category)
	if !slices.Contains(r.order, title) {
		r.order = append(r.order, title)
	}
	r.entries[title] = append(r.entries[title], entry)
}

// Markdown returns the section of the release. The template cannot change the
// heading: later releases use it to find their position.
func (r *Release) Markdown() (string, error) {
	var categories []any
	for _, title := range r.order {
		if list := r.entries[title]; len(list) > 0 {
			categories = append(categories, map[string]any{
				"title": title, "count": len(list), "single_change": len(list) == 1, "entries": list,
			})
		}
	}
	text, err := r.config.template.render(map[string]any{"categories": categories})
	if err != nil {
		return "", Failure("%v", err)
	}
	return "## " + r.version + " (" + formatDate(r.config.dateFormat, r.at) + ")\n\n" + strings.TrimSpace(text) + "\n\n", nil
}

// sectionHeading matches the heading of a section, with its version.
var sectionHeading = regexp.MustCompile(`^##\s+(v?[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*)`)

// HasSection reports whether a changelog has a section for the version.
func HasSection(changelog, version string) bool {
	for line := range strings.Lines(changelog) {
		if m := sectionHeading.FindStringSubmatch(line); m != nil && strings.TrimPrefix(m[1], "v") == strings.TrimPrefix(version, "v") {
			return true
		}
	}
	return false
}

// AddSection inserts a section before the first one with a lower version, so
// that the newest comes first.
func AddSection(changelog, version, section string) string {
	own, _ := semver.Parse(version)
	at := 0
	for line := range strings.Lines(changelog) {
		if m := sectionHeading.FindStringSubmatch(line); m != nil {
			if v, ok := semver.Parse(m[1]); ok && v.Compare(own) < 0 {
				return changelog[:at] + section + changelog[at:]
			}
		}
		at += len(line)
	}
	if changelog == "" {
		return strings.TrimSpace(section) + "\n"
	}
	gap := "\n\n"
	if strings.HasSuffix(changelog, "\n\n") {
		gap = ""
	} else if strings.HasSuffix(changelog, "\n") {
		gap = "\n"
	}
	return changelog + gap + strings.TrimSpace(section) + "\n"
}
