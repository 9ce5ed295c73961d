package release

import (
	"context"
	"fmt"
)

// maxVersions is the number of releases that are read to find a version.
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
