package release

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
)

// Version is a semantic version.
type Version struct {
	Major, Minor, Patch int64
	Prerelease          string
}

var versionPattern = regexp.MustCompile(`^v?(0|[1-9]\d{0,9})\.(0|[1-9]\d{0,9})\.(0|[1-9]\d{0,9})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$`)

// ParseVersion parses the tag of a version, such as 1.2.3 or v1.2.3-rc.1.
func ParseVersion(tag string) (v Version, ok bool) {
	m := versionPattern.FindStringSubmatch(tag)
	if m == nil {
		return v, false
	}
	for i, to := range []*int64{&v.Major, &v.Minor, &v.Patch} {
		n, err := strconv.ParseInt(m[i+1], 10, 64)
		if err != nil {
			return v, false
		}
		*to = n
	}
	v.Prerelease = m[4]
	return v, true
}

// Less reports whether v is lower than another version. Prereleases of one version
// are equal.
func (v Version) Less(w Version) bool {
	switch {
	case v.Major != w.Major:
		return v.Major < w.Major
	case v.Minor != w.Minor:
		return v.Minor < w.Minor
	case v.Patch != w.Patch:
		return v.Patch < w.Patch
	}
	return v.Prerelease != "" && w.Prerelease == ""
}

// maxVersions is how many releases are looked at for a version.
const maxVersions = 10_000

// Versions returns the tags of the releases of a project that are not in the
// future, the newest first. The caller checks the permissions.
func (s *Service) Versions(ctx context.Context, projectID int64) ([]string, error) {
	tags, err := findVersions(ctx, s.DB, projectID, s.Now(), maxVersions)
	if err != nil {
		return nil, fmt.Errorf("versions of project %d: %w", projectID, err)
	}
	return tags, nil
}
