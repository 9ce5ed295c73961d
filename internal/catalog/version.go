package catalog

import (
	"slices"
	"strings"

	"svc/internal/ci/config"
	"svc/internal/semver"
)

func toInput(i config.FormInput) Input {
	return Input{Name: i.Name, Type: i.Kind, Description: i.Description, Default: i.Default, Required: i.Needed}
}

// clip truncates a description to maxDescription bytes.
func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxDescription)], "")
}

// sortVersions sorts versions in descending order.
func sortVersions(list []*Version) {
	slices.SortStableFunc(list, func(a, b *Version) int {
		x, _ := semver.Parse(a.Name)
		y, _ := semver.Parse(b.Name)
		return y.Compare(x)
	})
}

// highest returns the highest version that is not a prerelease; if all are
// prereleases, the highest of them; nil for an empty list.
func highest(list []*Version) *Version {
	if len(list) == 0 {
		return nil
	}
	sorted := slices.Clone(list)
	sortVersions(sorted)
	for _, v := range sorted {
		if x, ok := semver.Parse(v.Name); ok && x.Pre == "" {
			return v
		}
	}
	return sorted[0]
}
