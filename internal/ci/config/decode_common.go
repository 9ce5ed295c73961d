package config

import (
	"slices"
	"strings"
)

// common reads the keywords that default may also have, and records in set which of them
// occur.
func (d *decoder) common(n *node, loc string, j *Job, set map[string]bool) {
	for _, key := range defaultKeys() {
		v := n.get(key)
		if v == nil {
			continue
		}
		set[key] = true
		at := entry(loc, key)
		switch key {
		case "before_script":
			j.BeforeScript = d.commands(v, at)
		case "after_script":
			j.AfterScript = d.commands(v, at)
		case "image":
			j.Image = d.image(v, within(loc, key))
		case "services":
			j.Services = d.services(v, within(loc, key))
		case "cache":
			j.Cache = d.caches(v, within(loc, key))
		case "interruptible":
			j.Interruptible = d.truth(v, at)
		case "timeout":
			j.Timeout = d.duration(v, at, month)
		case "retry":
			j.Retry = d.retry(v, within(loc, key))
		case "tags":
			j.Tags = d.texts(v, at)
			if len(j.Tags) > maxTags {
				d.fail(v.pos, at, "must be less than the limit of %d tags", maxTags)
			}
		case "artifacts":
			j.Artifacts = d.artifacts(v, within(loc, key))
		case "hooks":
			if d.table(v, within(loc, key), "pre_get_sources_script") {
				script := d.commands(v.get("pre_get_sources_script"), entry(within(loc, key), "pre_get_sources_script"))
				j.Hooks = &Hooks{PreGetSourcesScript: script}
			}
		case "id_tokens":
			j.IDTokens = d.idTokens(v, within(loc, key))
		case "identity":
			j.Identity = d.oneOf(v, at, "google_cloud")
		}
	}
}

// commands reads a script: a string, or nested lists of strings.
func (d *decoder) commands(n *node, s spot) []string {
	if n == nil {
		return nil
	}
	if n.kind == text {
		return []string{n.text}
	}
	lines, ok := appendLines([]string{}, n, maxNesting)
	if !ok || n.kind != list {
		d.fail(n.pos, s, "should be a string or a nested array of strings up to %d levels deep", maxNesting)
		return nil
	}
	return lines
}

func appendLines(out []string, n *node, levels int) ([]string, bool) {
	for _, item := range n.items {
		switch {
		case item.kind == text:
			out = append(out, item.text)
		case item.kind == list && levels > 1:
			var ok bool
			if out, ok = appendLines(out, item, levels-1); !ok {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return out, true
}

func (d *decoder) image(n *node, loc string) *Image {
	if n.kind == text {
		if n.text == "" {
			d.fail(n.pos, attribute(loc, "name"), "can't be blank")
		}
		return &Image{Name: n.text}
	}
	if n.kind != table {
		d.fail(n.pos, whole(loc), "should be a hash or a string")
		return nil
	}
	d.known(n, loc, "name", "entrypoint", "pull_policy", "docker", "kubernetes")
	img := d.imageParts(n, loc)
	return &img
}

func (d *decoder) imageParts(n *node, loc string) Image {
	img := Image{
		Name:       d.text(n.get("name"), attribute(loc, "name")),
		PullPolicy: d.textOrTexts(n.get("pull_policy"), entry(loc, "pull_policy")),
	}
	if n.get("name") == nil {
		d.fail(n.pos, attribute(loc, "name"), "can't be blank")
	}
	if e := n.get("entrypoint"); e != nil {
		img.Entrypoint = d.texts(e, attribute(loc, "entrypoint"))
	}
	for _, p := range img.PullPolicy {
		if !slices.Contains([]string{"always", "never", "if-not-present"}, p) {
			d.fail(n.get("pull_policy").pos, entry(loc, "pull_policy"), "contains unknown values: %s", p)
		}
	}
	if v := n.get("docker"); v != nil && d.table(v, loc+":docker", "platform", "user") {
		img.Docker = &DockerOptions{
			Platform: d.text(v.get("platform"), attribute(loc+":docker", "platform")),
			User:     d.text(v.get("user"), attribute(loc+":docker", "user")),
		}
	}
	if v := n.get("kubernetes"); v != nil && d.table(v, loc+":kubernetes", "user") {
		user := v.get("user")
		if user != nil && user.kind == integer {
			user = newScalar(text, user.text, user.pos)
		}
		img.Kubernetes = &KubernetesOptions{User: d.text(user, attribute(loc+":kubernetes", "user"))}
	}
	return img
}

func (d *decoder) services(n *node, loc string) []Service {
	if n.kind != list {
		d.fail(n.pos, whole(loc), "should be an array")
		return nil
	}
	out := []Service{}
	for _, item := range n.items {
		at := loc + ":service"
		switch item.kind {
		case text:
			out = append(out, Service{Image: Image{Name: item.text}})
			continue
		case table:
		default:
			d.fail(item.pos, whole(at), "should be a hash or a string")
			continue
		}
		d.known(item, at, "name", "entrypoint", "command", "alias", "variables", "pull_policy", "docker", "kubernetes")
		s := Service{
			Image:     d.imageParts(item, at),
			Alias:     d.text(item.get("alias"), attribute(at, "alias")),
			Variables: d.variables(item.get("variables"), at+":variables"),
		}
		if c := item.get("command"); c != nil {
			s.Command = d.texts(c, attribute(at, "command"))
		}
		out = append(out, s)
	}
	return out
}

// retryReasons returns the failure reasons that retry:when accepts.
func retryReasons() []string {
	return []string{
		"always", "unknown_failure", "script_failure", "api_failure", "stuck_or_timeout_failure",
		"runner_system_failure", "missing_dependency_failure", "runner_unsupported", "stale_schedule",
		"job_execution_timeout", "archived_failure", "unmet_prerequisites", "scheduler_failure",
		"data_integrity_failure",
	}
}

func (d *decoder) retry(n *node, loc string) *Retry {
	switch n.kind {
	case integer:
		return &Retry{Max: d.number(n, whole(loc), 0, 2)}
	case table:
	default:
		d.fail(n.pos, whole(loc), "has to be either an integer or a hash")
		return nil
	}
	d.known(n, loc, "max", "when", "exit_codes")
	r := &Retry{
		Max:       d.number(n.get("max"), attribute(loc, "max"), 0, 2),
		When:      d.textOrTexts(n.get("when"), attribute(loc, "when")),
		ExitCodes: d.numbers(n.get("exit_codes"), attribute(loc, "exit_codes")),
	}
	var unknown []string
	for _, w := range r.When {
		if !slices.Contains(retryReasons(), w) {
			unknown = append(unknown, w)
		}
	}
	switch {
	case unknown == nil:
	case n.get("when").kind == text:
		d.fail(n.get("when").pos, attribute(loc, "when"), "is not included in the list")
	default:
		d.fail(n.get("when").pos, attribute(loc, "when"), "contains unknown values: %s", strings.Join(unknown, ", "))
	}
	return r
}

func (d *decoder) coverage(n *node, s spot) string {
	if n == nil {
		return ""
	}
	if n.kind != text || !looksLikePattern(n.text) {
		d.fail(n.pos, s, "must be a regular expression with re2 syntax")
		return ""
	}
	if _, _, err := checkPattern(n.text); err != nil {
		d.fail(n.pos, s, "must be a regular expression with re2 syntax")
		return ""
	}
	return n.text
}

func (d *decoder) idTokens(n *node, loc string) map[string]IDToken {
	if n.kind != table {
		d.fail(n.pos, whole(loc), "should be a hash")
		return nil
	}
	out := make(map[string]IDToken, len(n.fields))
	for _, f := range n.fields {
		at := loc + ":" + f.key
		if !d.table(f.value, at, "aud") {
			continue
		}
		aud := f.value.get("aud")
		if aud == nil {
			d.fail(f.pos, whole(at), "missing required keys: aud")
			continue
		}
		out[f.key] = IDToken{Audience: d.textOrTexts(aud, attribute(at, "aud"))}
	}
	return out
}
