package ci

import (
	"cmp"
	"encoding/json"
	"strings"

	"svc/internal/ci/config"
)

// releaseAsset is an entry of release:assets:links.
type releaseAsset struct {
	Name     string `json:"name"`
	URL      string `json:"url"`
	Filepath string `json:"filepath,omitempty"`
	LinkType string `json:"link_type,omitempty"`
}

// ReleaseScript returns the commands that create the release of a job; nil if it
// has none. They use release-cli or glab, as the image of the job has it, and curl
// otherwise. The shell expands the variables of the job, and nothing else.
func (j *Job) ReleaseScript() []string {
	if j.Options.Release == nil {
		return nil
	}
	with := *j.Options.Release
	r := &with
	r.Ref = cmp.Or(r.Ref, "$CI_COMMIT_SHA") // a new tag is for the commit of the pipeline
	var assets struct {
		Links []releaseAsset `json:"links"`
	}
	if len(r.Assets) > 0 && json.Unmarshal(r.Assets, &assets) != nil {
		assets.Links = nil // the configuration was checked
	}
	return []string{
		"# Create the release\n" +
			"if command -v release-cli >/dev/null 2>&1; then\n" +
			"  " + releaseCLI(r, assets.Links) + "\n" +
			"elif command -v glab >/dev/null 2>&1; then\n" +
			"  " + glabRelease(r, assets.Links) + "\n" +
			"elif command -v curl >/dev/null 2>&1; then\n" +
			"  " + curlRelease(r, assets.Links) + "\n" +
			"else\n" +
			"  echo 'The keyword release needs release-cli, glab or curl in the image of the job.' >&2\n" +
			"  exit 1\n" +
			"fi",
	}
}

// releaseCLI is the command line of release-cli. It reads the description from a
// file if there is one of that name.
func releaseCLI(r *config.Release, links []releaseAsset) string {
	c := command{"release-cli create"}
	c.some("--name", r.Name)
	c.some("--description", r.Description)
	c.some("--tag-name", r.TagName)
	c.some("--tag-message", r.TagMessage)
	c.some("--ref", r.Ref)
	c.some("--released-at", r.ReleasedAt)
	for _, m := range r.Milestones {
		c.some("--milestone", m)
	}
	for _, l := range links {
		c.some("--assets-link", assetJSON(l))
	}
	return c.String()
}

func glabRelease(r *config.Release, links []releaseAsset) string {
	c := command{`GLAB_ENABLE_CI_AUTOLOGIN=true glab release create ` + shellText(r.TagName) + ` --repo "$CI_PROJECT_URL" --no-update --no-close-milestone`}
	c.some("--name", r.Name)
	c.some("--tag-message", r.TagMessage)
	c.some("--ref", r.Ref)
	c.some("--released-at", r.ReleasedAt)
	for _, m := range r.Milestones {
		c.some("--milestone", m)
	}
	if len(links) > 0 {
		list := make([]string, len(links))
		for i, l := range links {
			list[i] = assetJSON(l)
		}
		c.some("--assets-links", strings.ReplaceAll("["+strings.Join(list, ",")+"]", `"filepath":`, `"direct_asset_path":`))
	}
	notes := shellText(r.Description)
	return "if [ -f " + notes + " ]; then " + c.String() + " --notes-file " + notes + "; else " + c.String() + " --notes " + notes + "; fi"
}

func curlRelease(r *config.Release, links []releaseAsset) string {
	c := command{`curl --fail-with-body --silent --show-error --output /dev/null --header "JOB-TOKEN: $CI_JOB_TOKEN"`}
	field := func(name, value string) {
		if value != "" {
			c = append(c, "--data-urlencode", shellText(name+"="+value))
		}
	}
	field("tag_name", r.TagName)
	field("name", r.Name)
	field("tag_message", r.TagMessage)
	field("ref", r.Ref)
	field("released_at", r.ReleasedAt)
	for _, m := range r.Milestones {
		field("milestones[]", m)
	}
	for _, l := range links {
		field("assets[links][][name]", l.Name)
		field("assets[links][][url]", l.URL)
		field("assets[links][][direct_asset_path]", l.Filepath)
		field("assets[links][][link_type]", l.LinkType)
	}
	notes := shellText(r.Description)
	const to = ` "$CI_API_V4_URL/projects/$CI_PROJECT_ID/releases"`
	return "if [ -f " + notes + " ]; then " + c.String() + " --data-urlencode description@" + notes + to +
		"; else " + c.String() + " --data-urlencode " + shellText("description="+r.Description) + to + "; fi"
}

// command is a command line: its words.
type command []string

func (c *command) some(flag, value string) {
	if value != "" {
		*c = append(*c, flag, shellText(value))
	}
}

func (c command) String() string { return strings.Join(c, " ") }

func assetJSON(l releaseAsset) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(l); err != nil {
		return "{}" // it has texts only
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// shellText quotes a text as one word for a shell. References to variables are
// preserved; all other special characters are escaped.
func shellText(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\\', '`':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '$':
			if n := reference(text[i:]); n > 0 {
				b.WriteString(text[i : i+n])
				i += n - 1
				continue
			}
			b.WriteString(`\$`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// reference returns the length of the reference to a variable that a text starts
// with, $NAME or ${NAME}, or 0.
func reference(text string) int {
	rest, brace := text[1:], false
	if strings.HasPrefix(rest, "{") {
		rest, brace = rest[1:], true
	}
	n := 0
	for n < len(rest) && (rest[n] == '_' || rest[n] >= 'a' && rest[n] <= 'z' || rest[n] >= 'A' && rest[n] <= 'Z' || n > 0 && rest[n] >= '0' && rest[n] <= '9') {
		n++
	}
	switch {
	case n == 0, brace && (n == len(rest) || rest[n] != '}'):
		return 0
	case brace:
		return n + 3
	}
	return n + 1
}
