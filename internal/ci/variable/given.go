package variable

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/ci/config"
	"svc/internal/errs"
	"svc/internal/project"
)

// Given is a variable that is given to a pipeline, a schedule or a job when it is
// started. A list of them is stored as encrypted JSON.
type Given struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	Type  Type   `json:"type,omitempty"`
	Raw   bool   `json:"raw,omitempty"`
}

// Config returns given variables in the form of the configuration.
func Config(list []Given) []config.Variable {
	var out []config.Variable
	for _, v := range list {
		out = append(out, config.Variable{Key: v.Key, Value: v.Value, File: v.Type == File, Raw: v.Raw})
	}
	return out
}

// Check checks the keys of given variables. Invalid.
func Check(list []Given) error {
	for _, v := range list {
		if !config.ValidKey(v.Key) {
			return errs.InvalidField("variables.key", "can contain only letters, digits and '_'.")
		}
	}
	return nil
}

// Seal encrypts given variables for a place, which names their row.
func (s *Service) Seal(list []Given, place string) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	return s.Keys.Seal(text, place), nil
}

// Open decrypts given variables of a place.
func (s *Service) Open(sealed, place string) ([]Given, error) {
	if sealed == "" {
		return nil, nil
	}
	text, err := s.Keys.Open(sealed, place)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	var list []Given
	return list, json.Unmarshal(text, &list)
}

// NotAllowed is the message for users for whom MayGive is false.
const NotAllowed = "Insufficient permissions to set pipeline variables"

// MayGive reports whether the actor may set the variables of pipelines and jobs of a
// project that they may start.
func MayGive(by actor.Actor, p *project.Project) bool {
	level := p.Access.Level()
	if by.Admin {
		level = project.Owner
	}
	switch p.Settings.CIPipelineVariablesMinimumOverrideRole {
	case "maintainer":
		return level >= project.Maintainer
	case "owner":
		return level >= project.Owner
	case "no_one_allowed":
		return false
	}
	return level >= project.Developer
}

// ForJobs returns the variables of the instance, of the groups and of the project for
// jobs of an environment. Later ones override earlier ones. Protected variables are for
// protected refs only.
func (s *Service) ForJobs(ctx context.Context, p *project.Project, protected bool, environment string) ([]config.Variable, error) {
	all, err := s.Available(ctx, p, protected)
	if err != nil {
		return nil, err
	}
	return all.For(environment)
}

// Available are the variables of the instance, of the groups and of the project for
// the jobs of a ref.
type Available struct {
	service   *Service
	instance  []Variable
	others    []Variable
	protected bool
}

// Available reads the variables for the jobs of a ref, which may be protected.
func (s *Service) Available(ctx context.Context, p *project.Project, protected bool) (*Available, error) {
	instance, others, err := findAll(ctx, s.DB, p.NamespaceID, p.ID)
	if err != nil {
		return nil, err
	}
	return &Available{service: s, instance: instance, others: others, protected: protected}, nil
}

// Scoped reports whether a variable is only for certain environments.
func (a *Available) Scoped() bool {
	return slices.ContainsFunc(a.others, func(v Variable) bool { return !v.inScope("") })
}

// For returns the variables for the jobs of an environment; see ForJobs.
func (a *Available) For(environment string) ([]config.Variable, error) {
	var out []config.Variable
	add := func(v *Variable) {
		out = append(out, config.Variable{Key: v.Key, Value: v.Value, File: v.Type == File, Masked: v.Masked, Raw: v.Raw})
	}
	for _, v := range a.instance { // copies: the stored values stay encrypted
		if v.Protected && !a.protected {
			continue
		}
		if err := a.service.openInstance(&v); err != nil {
			return nil, err
		}
		add(&v)
	}
	for _, v := range a.others {
		if v.Protected && !a.protected || !v.inScope(environment) {
			continue
		}
		if err := a.service.open(&v); err != nil {
			return nil, err
		}
		add(&v)
	}
	return out, nil
}
