package config

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

var (
	exposePattern      = regexp.MustCompile(`^\w[-\w ]*$`)
	environmentPattern = regexp.MustCompile(`^[\w\-/${}. ]+$`)
	policyPattern      = regexp.MustCompile(`^(?:pull-push|push|pull|.*\$\w{1,255}.*)$`)
)

// reportTypes returns the types of artifacts:reports except coverage_report, which has its
// own form.
func reportTypes() []string {
	return []string{
		"junit", "dotenv", "codequality", "sast", "secret_detection", "dependency_scanning", "container_scanning",
		"cluster_image_scanning", "dast", "performance", "browser_performance", "load_performance",
		"license_scanning", "metrics", "lsif", "terraform", "accessibility", "coverage_fuzzing", "api_fuzzing",
		"requirements", "requirements_v2", "cyclonedx", "annotations", "repository_xray", "sarif",
	}
}

func (d *decoder) artifacts(n *node, loc string) *Artifacts {
	if !d.table(n, loc, "name", "untracked", "paths", "reports", "when", "expire_in", "expose_as", "exclude", "public", "access") {
		return nil
	}
	if n.get("public") != nil && n.get("access") != nil {
		d.fail(n.keyPos("public"), whole(loc), "these keys cannot be used together: public, access")
	}
	a := &Artifacts{
		Name:      d.text(n.get("name"), attribute(loc, "name")),
		Untracked: d.isTrue(n.get("untracked"), attribute(loc, "untracked")),
		Paths:     d.texts(n.get("paths"), attribute(loc, "paths")),
		Exclude:   d.texts(n.get("exclude"), attribute(loc, "exclude")),
		When:      When(d.oneOf(n.get("when"), attribute(loc, "when"), "on_success", "on_failure", "always")),
		ExpireIn:  d.durationText(n.get("expire_in"), attribute(loc, "expire_in"), false, true),
		ExposeAs:  d.text(n.get("expose_as"), attribute(loc, "expose_as")),
		Access:    d.oneOf(n.get("access"), attribute(loc, "access"), "none", "developer", "maintainer", "all"),
	}
	if public := d.truth(n.get("public"), attribute(loc, "public")); public != nil && !*public {
		a.Access = "developer"
	}
	if n.get("expose_as") != nil {
		d.expose(n, loc, a)
	}
	d.reports(n.get("reports"), loc+":reports", a)
	return a
}

func (d *decoder) expose(n *node, loc string, a *Artifacts) {
	at := n.get("expose_as").pos
	switch {
	case len(a.Paths) == 0:
		d.fail(at, attribute(loc, "paths"), "can't be blank")
	case slices.ContainsFunc(a.Paths, func(p string) bool { return strings.Contains(p, "*") }):
		d.fail(at, attribute(loc, "paths"), "can't contain '*' when used with 'expose_as'")
	}
	switch {
	case utf8.RuneCountInString(a.ExposeAs) > 100:
		d.fail(at, attribute(loc, "expose_as"), "is too long (maximum is 100 characters)")
	case a.ExposeAs != "" && !exposePattern.MatchString(a.ExposeAs):
		d.fail(at, attribute(loc, "expose_as"), "can contain only letters, digits, '-', '_' and spaces")
	}
}

func (d *decoder) reports(n *node, loc string, a *Artifacts) {
	if n == nil || !d.table(n, loc, append(reportTypes(), "coverage_report")...) {
		return
	}
	for _, t := range reportTypes() {
		v := n.get(t)
		if v == nil {
			continue
		}
		if a.Reports == nil {
			a.Reports = map[string][]string{}
		}
		a.Reports[t] = d.textOrTexts(v, attribute(loc, t))
	}
	c := n.get("coverage_report")
	if c == nil || !d.table(c, loc+":coverage_report", "coverage_format", "path") {
		return
	}
	loc += ":coverage_report"
	a.CoverageReport = &CoverageReport{
		Format: d.oneOf(c.get("coverage_format"), attribute(loc, "coverage_format"), "cobertura", "jacoco"),
		Path:   d.text(c.get("path"), attribute(loc, "path")),
	}
	for _, key := range []string{"coverage_format", "path"} {
		if c.get(key) == nil {
			d.fail(c.pos, attribute(loc, key), "can't be blank")
		}
	}
}

// caches reads one cache, or a list of them.
func (d *decoder) caches(n *node, loc string) []Cache {
	items := []*node{n}
	if n.kind == list {
		items = n.items
	}
	if len(items) > maxCaches {
		d.fail(n.pos, spot{loc, loc + " caches config"}, "no more than %d caches can be created", maxCaches)
		return nil
	}
	out := []Cache{}
	for _, item := range items {
		if item.kind == table && len(item.fields) == 0 {
			continue // {} means no cache
		}
		if d.table(item, loc, "key", "untracked", "paths", "when", "policy", "unprotect", "fallback_keys") {
			out = append(out, d.cache(item, loc))
		}
	}
	return out
}

func (d *decoder) cache(n *node, loc string) Cache {
	c := Cache{
		Paths:        d.texts(n.get("paths"), entry(loc, "paths")),
		Untracked:    d.isTrue(n.get("untracked"), entry(loc, "untracked")),
		Unprotect:    d.isTrue(n.get("unprotect"), entry(loc, "unprotect")),
		Policy:       d.text(n.get("policy"), attribute(loc, "policy")),
		When:         When(d.oneOf(n.get("when"), attribute(loc, "when"), "on_success", "on_failure", "always")),
		FallbackKeys: d.texts(n.get("fallback_keys"), entry(loc, "fallback_keys")),
	}
	switch {
	case c.Policy == "":
		c.Policy = "pull-push"
	case !policyPattern.MatchString(c.Policy):
		d.fail(n.get("policy").pos, attribute(loc, "policy"), "should be a variable or one of: pull-push, push, pull")
	}
	if c.When == "" {
		c.When = OnSuccess
	}
	if len(c.FallbackKeys) > maxFallbackKeys {
		d.fail(n.get("fallback_keys").pos, attribute(loc, "fallback_keys"), "has to many entries (maximum %d)", maxFallbackKeys)
	}
	d.cacheKey(n.get("key"), loc+":key", &c)
	return c
}

func (d *decoder) cacheKey(n *node, loc string, c *Cache) {
	switch {
	case n == nil:
		c.Key = "default"
		return
	case n.kind == table:
	case n.kind == text || n.kind == integer || n.kind == float || n.kind == boolean:
		c.Key = d.cacheKeyText(n, whole(loc))
		return
	default:
		d.fail(n.pos, whole(loc), "should be a hash, a string or a symbol")
		return
	}
	d.known(n, loc, "files", "files_commits", "prefix")
	key := "files"
	if n.has("files_commits") {
		key, c.KeyCommits = "files_commits", true
	}
	c.KeyFiles = d.texts(n.get(key), entry(loc, key))
	switch files := n.get(key); {
	case c.KeyCommits && n.has("files"):
		d.fail(n.pos, whole(loc), "must use exactly one of these keys: files, files_commits")
	case files == nil:
		d.fail(n.pos, whole(loc), "missing required keys: files")
	case len(c.KeyFiles) > maxCacheFiles:
		d.fail(files.pos, entry(loc, key), "has too many items (maximum is %d)", maxCacheFiles)
	case len(c.KeyFiles) == 0 && files.kind == list:
		d.fail(files.pos, entry(loc, key), "requires at least 1 item")
	}
	if prefix := n.get("prefix"); prefix != nil {
		c.KeyPrefix = d.cacheKeyText(prefix, entry(loc, "prefix"))
	}
}

// cacheKeyText checks a cache key, which becomes the name of a directory of the runner.
func (d *decoder) cacheKeyText(n *node, s spot) string {
	path, err := url.QueryUnescape(n.text)
	if err != nil {
		path = n.text
	}
	switch {
	case n.kind == list || n.kind == table:
		d.fail(n.pos, s, "should be a string or symbol")
	case strings.Contains(path, "/"):
		d.fail(n.pos, s, `cannot contain the "/" character`)
	case path == "." || path == "..":
		d.fail(n.pos, s, `cannot be "." or ".."`)
	}
	return n.text
}

func (d *decoder) environment(n *node, loc string) *Environment {
	if n == nil {
		return nil
	}
	e := &Environment{Action: "start"}
	switch n.kind {
	case text:
		e.Name = n.text
	case table:
		d.known(n, loc, "name", "url", "action", "on_stop", "auto_stop_in", "kubernetes", "deployment_tier")
		e.Name = d.text(n.get("name"), attribute(loc, "name"))
		e.URL = d.text(n.get("url"), attribute(loc, "url"))
		e.OnStop = d.text(n.get("on_stop"), attribute(loc, "on_stop"))
		e.AutoStopIn = d.durationText(n.get("auto_stop_in"), attribute(loc, "auto_stop_in"), true, true)
		if a := n.get("action"); a != nil {
			e.Action = a.text
			if !slices.Contains([]string{"start", "stop", "prepare", "verify", "access"}, a.text) {
				d.fail(a.pos, attribute(loc, "action"), "should be start, stop, prepare, verify, or access")
			}
		}
		if t := n.get("deployment_tier"); t != nil && t.kind == text && strings.Contains(t.text, "$") {
			e.Tier = t.text
		} else {
			e.Tier = d.oneOf(t, attribute(loc, "deployment_tier"), tiers()...)
		}
		if k := n.get("kubernetes"); k != nil && d.table(k, loc+":kubernetes", "agent", "namespace", "flux_resource_path", "managed_resources", "dashboard") {
			e.Kubernetes = raw(k)
		}
		if len(e.URL) > maxName {
			d.fail(n.get("url").pos, attribute(loc, "url"), "is too long (maximum is %d characters)", maxName)
		}
	default:
		d.fail(n.pos, whole(loc), "should be a hash or a string")
		return nil
	}
	switch {
	case e.Name == "":
		d.fail(n.pos, attribute(loc, "name"), "can't be blank")
	case !environmentPattern.MatchString(e.Name) || strings.HasPrefix(e.Name, "/") || strings.HasSuffix(e.Name, "/"):
		d.fail(n.pos, attribute(loc, "name"), "can contain only letters, digits, '-', '_', '/', '$', '{', '}', '.', and spaces, but it cannot start or end with '/'")
	}
	return e
}

// tiers are the deployment tiers.
func tiers() []string { return []string{"production", "staging", "testing", "development", "other"} }

func (d *decoder) release(n *node, loc string) *Release {
	if n == nil || !d.table(n, loc, "tag_name", "tag_message", "name", "description", "ref", "milestones", "released_at", "assets") {
		return nil
	}
	r := &Release{
		TagName:     d.text(n.get("tag_name"), attribute(loc, "tag_name")),
		TagMessage:  d.text(n.get("tag_message"), attribute(loc, "tag_message")),
		Name:        d.text(n.get("name"), attribute(loc, "name")),
		Description: d.text(n.get("description"), attribute(loc, "description")),
		Ref:         d.text(n.get("ref"), attribute(loc, "ref")),
		Milestones:  d.textOrTexts(n.get("milestones"), attribute(loc, "milestones")),
		ReleasedAt:  d.text(n.get("released_at"), attribute(loc, "released_at")),
	}
	for _, key := range []string{"tag_name", "description"} {
		if v := n.get(key); v == nil || v.kind == text && strings.TrimSpace(v.text) == "" {
			d.fail(n.pos, attribute(loc, key), "can't be blank")
		}
	}
	if at := r.ReleasedAt; at != "" && !strings.Contains(at, "$") && !isDateTime(at) {
		d.fail(n.get("released_at").pos, attribute(loc, "released_at"), "must be a valid datetime")
	}
	if a := n.get("assets"); a != nil && d.table(a, loc+":assets", "links") {
		d.assetLinks(a.get("links"), loc+":assets:links")
		r.Assets = raw(a)
	}
	return r
}

// isDateTime reports whether a text is a date, or a date and time, of ISO 8601.
func isDateTime(text string) bool {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly} {
		if _, err := time.Parse(layout, text); err == nil {
			return true
		}
	}
	return false
}

func (d *decoder) assetLinks(n *node, loc string) {
	if n == nil || n.kind != list {
		return
	}
	for _, link := range n.items {
		if !d.table(link, loc+":link", "name", "url", "filepath", "link_type") {
			continue
		}
		for _, key := range []string{"name", "url"} {
			if d.text(link.get(key), attribute(loc+":link", key)) == "" {
				d.fail(link.pos, attribute(loc+":link", key), "can't be blank")
			}
		}
	}
}

// pages determines whether the job publishes a Pages site: by its keyword or its name.
func (d *decoder) pages(n *node, loc string, def *definition) {
	v := n.get("pages")
	publish := d.text(n.get("publish"), attribute(loc, "publish"))
	switch {
	case v == nil && def.Name != "pages":
		return
	case v == nil:
		def.Pages = &Pages{}
	case v.kind == boolean:
		if v.text == "false" {
			return
		}
		def.Pages = &Pages{}
	case v.kind == table:
		d.known(v, loc+":pages", "path_prefix", "expire_in", "publish")
		def.Pages = &Pages{
			Publish:    d.text(v.get("publish"), attribute(loc+":pages", "publish")),
			PathPrefix: d.text(v.get("path_prefix"), attribute(loc+":pages", "path_prefix")),
			ExpireIn:   d.durationText(v.get("expire_in"), attribute(loc+":pages", "expire_in"), true, true),
		}
	default:
		d.fail(v.pos, entry(loc, "pages"), "should be a hash or a boolean value")
		return
	}
	if def.Pages.Publish == "" {
		def.Pages.Publish = publish
	}
	if def.Pages.Publish == "" {
		def.Pages.Publish = "public"
	}
	// The site is always uploaded as an artifact, even if the job does not list it. The
	// artifacts are copied, because they may be those of default, which jobs share.
	a := Artifacts{}
	if def.Artifacts != nil {
		a = *def.Artifacts
	}
	if !slices.Contains(a.Paths, def.Pages.Publish) {
		a.Paths = append(slices.Clone(a.Paths), def.Pages.Publish)
	}
	def.Artifacts = &a
}

func (d *decoder) secrets(n *node, loc string) map[string]Secret {
	if n == nil {
		return nil
	}
	if n.kind != table {
		d.fail(n.pos, whole(loc), "should be a hash")
		return nil
	}
	providers := []string{"vault", "gcp_secret_manager", "azure_key_vault", "akeyless", "aws_secrets_manager", "gitlab_secrets_manager"}
	out := make(map[string]Secret, len(n.fields))
	for _, f := range n.fields {
		at := loc + ":" + f.key
		if !d.table(f.value, at, append([]string{"file", "token"}, providers...)...) {
			continue
		}
		var s Secret
		count := 0
		for _, p := range providers {
			v := f.value.get(p)
			if v == nil {
				continue
			}
			count++
			s.Provider, s.Config = p, raw(v)
			if p == "vault" {
				s.Config = d.vault(v, at+":vault")
			}
		}
		if count != 1 {
			d.fail(f.pos, whole(at), "must use exactly one of these keys: %s", strings.Join(providers, ", "))
		}
		s.File = d.truth(f.value.get("file"), attribute(at, "file"))
		s.Token = d.text(f.value.get("token"), attribute(at, "token"))
		out[f.key] = s
	}
	return out
}

// vault reads the short form path/field@engine, or the long one.
func (d *decoder) vault(n *node, loc string) []byte {
	if n.kind == table {
		d.known(n, loc, "engine", "path", "field")
		for _, key := range []string{"engine", "path", "field"} {
			if n.get(key) == nil {
				d.fail(n.pos, attribute(loc, key), "can't be blank")
			}
		}
		return raw(n)
	}
	if n.kind != text {
		d.fail(n.pos, whole(loc), "should be a hash or a string")
		return nil
	}
	secret, engine, ok := strings.Cut(n.text, "@")
	if !ok {
		engine = "kv-v2"
	}
	slash := strings.LastIndexByte(secret, '/')
	if slash < 1 || slash == len(secret)-1 {
		d.fail(n.pos, whole(loc), "should be a path, a slash and a field")
		return nil
	}
	word := func(s string) *node { return newScalar(text, s, n.pos) }
	return raw(newTable([]field{
		{key: "engine", value: newTable([]field{{key: "name", value: word("kv-v2")}, {key: "path", value: word(engine)}}, n.pos)},
		{key: "path", value: word(secret[:slash])},
		{key: "field", value: word(secret[slash+1:])},
	}, n.pos))
}
