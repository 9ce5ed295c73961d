package ci

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"svc/internal/ci/config"
	"svc/internal/semver"
)

// partialVersion is a version of a component that stands for the newest release
// that starts with it: 1 or 1.2.
var partialVersion = regexp.MustCompile(`^\d+(\.\d+)?$`)

// latestVersion stands for the newest release of a component.
const latestVersion = "~latest"

// Component finds a version of a project with components for config: a commit, tag
// or branch of that name, or else the release that ~latest or a part of a semantic
// version stands for.
func (f *projectFiles) Component(ctx context.Context, in, version string) (at config.Place, released string, err error) {
	_, whole := semver.Parse(version)
	if version != latestVersion {
		at, err = f.Find(ctx, in, version)
		if err != nil || at.Commit != "" && !whole || at.Commit == "" && !partialVersion.MatchString(version) {
			return at, "", err
		}
	}
	src, err := f.source(ctx, in)
	if err != nil {
		return config.Place{}, "", err
	}
	tags, err := f.service.Releases.Versions(ctx, src.Project.ID)
	if err != nil {
		return at, "", err
	}
	if at.Commit != "" {
		if slices.Contains(tags, version) {
			released = version
		}
		return at, released, nil
	}
	if released = newestVersion(tags, version); released == "" {
		return config.Place{Project: src.Project.FullPath}, "", nil
	}
	at, err = f.Find(ctx, in, "refs/tags/"+released)
	return at, released, err
}

// newestVersion returns the tag with the highest semantic version that starts with
// a part of a version, or of all. Prereleases do not count.
func newestVersion(tags []string, part string) string {
	best, found := semver.Version{}, ""
	for _, tag := range tags {
		v, ok := semver.Parse(tag)
		if !ok || v.Pre != "" {
			continue
		}
		if text := strings.TrimPrefix(tag, "v"); part != latestVersion && text != part && !strings.HasPrefix(text, part+".") {
			continue
		}
		if found == "" || best.Compare(v) < 0 {
			best, found = v, tag
		}
	}
	return found
}

// host is the host of the server with its port, as in CI_SERVER_FQDN.
func (s *Service) host() string {
	u, err := url.Parse(s.Site.URL)
	if err != nil {
		return ""
	}
	return u.Host
}
