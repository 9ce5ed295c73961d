package featureflag

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// InstanceID returns the credential with which applications fetch the flags of a
// project, and creates it if needed. Maintainers and above. NotFound, Forbidden.
func (s *Service) InstanceID(ctx context.Context, by actor.Actor, ref project.Ref) (string, error) {
	in, err := s.Projects.RequireChange(ctx, by, ref, project.FeatureFlagPart, project.Maintainer)
	if err != nil {
		return "", err
	}
	sealed, err := findSealed(ctx, s.DB, in.ID)
	if errors.Is(err, db.ErrNoRows) {
		return s.renew(ctx, by, in, false)
	}
	if err != nil {
		return "", fmt.Errorf("instance ID of project %d: %w", in.ID, err)
	}
	return s.open(sealed, in.ID)
}

// ResetInstanceID replaces the instance ID: applications with the old one can no
// longer fetch flags. Maintainers and above. NotFound, Forbidden.
func (s *Service) ResetInstanceID(ctx context.Context, by actor.Actor, ref project.Ref) (string, error) {
	in, err := s.Projects.RequireChange(ctx, by, ref, project.FeatureFlagPart, project.Maintainer)
	if err != nil {
		return "", err
	}
	return s.renew(ctx, by, in, true)
}

func (s *Service) renew(ctx context.Context, by actor.Actor, in *project.Project, replace bool) (string, error) {
	token := secret.Token(s.Prefix + "ffct-")
	sealed := s.Keys.Seal([]byte(token), sealedAt(in.ID))
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", in.ID); err != nil {
			return err
		}
		have, err := findSealed(ctx, tx, in.ID)
		if err != nil && !errors.Is(err, db.ErrNoRows) {
			return err
		}
		if err == nil && !replace { // another request has created it
			token, err = s.open(have, in.ID)
			return err
		}
		if err := saveClient(ctx, tx, in.ID, secret.Digest(token), sealed, s.Now()); err != nil {
			return err
		}
		kind, d := "feature_flags_client_created", audit.Details{Add: "instance_id"}
		if replace {
			kind, d = "feature_flags_client_reset", audit.Details{Change: "instance_id"}
		}
		return s.record(ctx, tx, by, in, kind, audit.Target{Type: "Operations::FeatureFlagsClient", ID: in.ID, Details: in.FullPath}, d)
	})
	if err != nil {
		return "", fmt.Errorf("instance ID of project %d: %w", in.ID, err)
	}
	return token, nil
}

func (s *Service) open(sealed string, projectID int64) (string, error) {
	token, err := s.Keys.Open(sealed, sealedAt(projectID))
	return string(token), err
}

func sealedAt(projectID int64) string {
	return "feature_flag_clients:" + strconv.FormatInt(projectID, 10)
}

// servedKey is the key of a cached response to clients.
type servedKey struct {
	project     int64
	environment string
}

// served is a cached response to clients: the flags at a revision, in JSON.
type served struct {
	revision int64
	body     []byte
}

// maxAppName is the maximum length of the environment name that a client sends.
const maxAppName = 255

// Serve returns the active and inactive flags of a project for an environment, in
// the JSON format of Unleash clients. The instance ID is the credential. Clients
// poll, so the response is cached: a poll costs one query. Unauthorized.
func (s *Service) Serve(ctx context.Context, projectID int64, instanceID, environment string) ([]byte, error) {
	revision, err := s.Authorize(ctx, projectID, instanceID)
	if err != nil {
		return nil, err
	}
	if len(environment) > maxAppName {
		return nil, errs.Invalid("the app name is too long (maximum is %d bytes)", maxAppName)
	}
	key := servedKey{projectID, environment}
	s.mu.Lock()
	have, ok := s.served.Get(key)
	s.mu.Unlock()
	if ok && have.revision == revision {
		return have.body, nil
	}
	body, err := s.render(ctx, projectID, environment)
	if err != nil {
		return nil, fmt.Errorf("serve feature flags of project %d: %w", projectID, err)
	}
	s.mu.Lock()
	s.served.Put(key, &served{revision, body}, len(body)+len(environment)+100)
	s.mu.Unlock()
	return body, nil
}

// Authorize checks the instance ID of a client and returns the revision of the
// flags. Unauthorized, also if feature flags are disabled.
func (s *Service) Authorize(ctx context.Context, projectID int64, instanceID string) (int64, error) {
	if instanceID == "" {
		return 0, errs.Unauthorized("")
	}
	c, err := findClient(ctx, s.DB, projectID)
	if errors.Is(err, db.ErrNoRows) {
		return 0, errs.Unauthorized("")
	}
	if err != nil {
		return 0, fmt.Errorf("find feature flag client: %w", err)
	}
	if !secret.Equal(c.digest, secret.Digest(instanceID)) || c.access == project.Disabled {
		return 0, errs.Unauthorized("")
	}
	return c.revision, nil
}

type unleashJSON struct {
	Version  int           `json:"version"`
	Features []featureJSON `json:"features"`
}

type featureJSON struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Enabled     bool           `json:"enabled"`
	Strategies  []strategyJSON `json:"strategies"`
}

type strategyJSON struct {
	Name       string            `json:"name"`
	Parameters map[string]string `json:"parameters"`
}

// render encodes the flags that have a strategy for an environment. A user list
// becomes a list of IDs, which all clients support.
func (s *Service) render(ctx context.Context, projectID int64, environment string) ([]byte, error) {
	flags, err := allFlags(ctx, s.DB, projectID)
	if err != nil {
		return nil, err
	}
	out := unleashJSON{Version: 1, Features: []featureJSON{}}
	for _, f := range flags {
		one := featureJSON{Name: f.Name, Description: f.Description, Enabled: f.Active}
		for _, st := range f.Strategies {
			if !st.applies(environment) {
				continue
			}
			rendered := strategyJSON{st.Name, st.Parameters}
			if st.Name == InUserList && st.UserList != nil {
				rendered = strategyJSON{UserIDs, map[string]string{"userIds": st.UserList.UserIDs}}
			}
			one.Strategies = append(one.Strategies, rendered)
		}
		if len(one.Strategies) > 0 {
			out.Features = append(out.Features, one)
		}
	}
	return json.Marshal(out)
}
