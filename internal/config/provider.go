package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Provider is an identity provider that users sign in with.
type Provider struct {
	Name  string `yaml:"name"`  // in URLs and in the identities of users
	Label string `yaml:"label"` // on pages; empty: the name
	Kind  string `yaml:"kind"`  // oidc

	Issuer           string   `yaml:"issuer"`
	ClientID         string   `yaml:"client_id"`
	ClientSecret     Secret   `yaml:"client_secret"`
	ClientSecretFile string   `yaml:"client_secret_file"` // read at the start, instead of ClientSecret
	Scopes           []string `yaml:"scopes"`
	CAFile           string   `yaml:"ca_file"` // empty: the roots of the system

	UsernameClaim string `yaml:"username_claim"`
	GroupsClaim   string `yaml:"groups_claim"`

	AutoCreate      bool `yaml:"auto_create"`
	RequireApproval bool `yaml:"require_approval"` // of users that were created
	LinkByEmail     bool `yaml:"link_by_email"`
	TrustEmail      bool `yaml:"trust_email"` // addresses are verified although the provider does not say so
	TrustTwoFactor  bool `yaml:"trust_two_factor"`

	RequiredGroups []string    `yaml:"required_groups"`
	AdminGroups    []string    `yaml:"admin_groups"`
	AuditorGroups  []string    `yaml:"auditor_groups"`
	GroupSync      []GroupSync `yaml:"group_sync"`
}

// GroupSync gives the users of a group of the provider a role in a group here.
type GroupSync struct {
	Claim string `yaml:"claim"` // value of the groups claim
	Group string `yaml:"group"` // full path
	Role  string `yaml:"role"`
}

// Providers are all identity providers. They are shown by their names.
type Providers []Provider

// String lists the names.
func (p Providers) String() string {
	var names []string
	for _, one := range p {
		names = append(names, one.Name)
	}
	return strings.Join(names, ",")
}

// Format writes the same for every verb, %d and %#v too.
func (p Providers) Format(f fmt.State, _ rune) { writeState(f, p.String()) }

// MarshalText keeps the client secrets out of JSON, YAML and logs.
func (p Providers) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

const (
	maxProviders = 20
	maxMappings  = 500 // of groups, for each list of one provider
)

// Roles of group_sync.
func syncRoles() []string {
	return []string{"guest", "planner", "reporter", "developer", "maintainer", "owner"}
}

// parseProviders takes a YAML list, of which JSON is a part. Its errors do not
// quote the text, which has secrets.
func parseProviders(text string) (Providers, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var nodes []yaml.Node
	if err := yaml.Unmarshal([]byte(text), &nodes); err != nil {
		return nil, errors.New("is not a list of mappings in YAML or JSON")
	}
	if len(nodes) > maxProviders {
		return nil, fmt.Errorf("has more than %d providers", maxProviders)
	}
	var list Providers
	var faults []string
	for i := range nodes {
		p, err := parseProvider(&nodes[i])
		name := p.Name
		if name == "" {
			name = fmt.Sprintf("number %d", i+1)
		}
		if err == nil && slices.ContainsFunc(list, func(o Provider) bool { return o.Name == p.Name }) {
			err = errors.New("is named twice")
		}
		if err != nil {
			faults = append(faults, fmt.Sprintf("provider %s: %v", name, err))
			continue
		}
		list = append(list, p)
	}
	if len(faults) > 0 {
		return nil, errors.New(strings.Join(faults, "; "))
	}
	return list, nil
}

func parseProvider(node *yaml.Node) (Provider, error) {
	p := Provider{
		Scopes: []string{"openid", "profile", "email"}, UsernameClaim: "preferred_username", GroupsClaim: "groups",
		AutoCreate: true, RequireApproval: true, TrustTwoFactor: true,
	}
	if node.Kind != yaml.MappingNode {
		return p, errors.New("is not a mapping")
	}
	known := providerKeys()
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		place, ok := known[key]
		if !ok {
			hint := ""
			var keys []string
			for k := range known {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			if near := nearest(key, keys); near != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			return p, fmt.Errorf("unknown key %q%s", key, hint)
		}
		if err := value.Decode(place(&p)); err != nil {
			return p, fmt.Errorf("%s has a value of the wrong type", key)
		}
	}
	return p, p.check()
}

// providerKeys are the keys of a provider and their fields.
func providerKeys() map[string]func(*Provider) any {
	return map[string]func(*Provider) any{
		"name":               func(p *Provider) any { return &p.Name },
		"label":              func(p *Provider) any { return &p.Label },
		"kind":               func(p *Provider) any { return &p.Kind },
		"issuer":             func(p *Provider) any { return &p.Issuer },
		"client_id":          func(p *Provider) any { return &p.ClientID },
		"client_secret":      func(p *Provider) any { return &p.ClientSecret },
		"client_secret_file": func(p *Provider) any { return &p.ClientSecretFile },
		"scopes":             func(p *Provider) any { return &p.Scopes },
		"ca_file":            func(p *Provider) any { return &p.CAFile },
		"username_claim":     func(p *Provider) any { return &p.UsernameClaim },
		"groups_claim":       func(p *Provider) any { return &p.GroupsClaim },
		"auto_create":        func(p *Provider) any { return &p.AutoCreate },
		"require_approval":   func(p *Provider) any { return &p.RequireApproval },
		"link_by_email":      func(p *Provider) any { return &p.LinkByEmail },
		"trust_email":        func(p *Provider) any { return &p.TrustEmail },
		"trust_two_factor":   func(p *Provider) any { return &p.TrustTwoFactor },
		"required_groups":    func(p *Provider) any { return &p.RequiredGroups },
		"admin_groups":       func(p *Provider) any { return &p.AdminGroups },
		"auditor_groups":     func(p *Provider) any { return &p.AuditorGroups },
		"group_sync":         func(p *Provider) any { return &p.GroupSync },
	}
}

// check completes a provider and refuses what cannot work.
func (p *Provider) check() error {
	if _, err := parseName(p.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if p.Label == "" {
		p.Label = p.Name
	}
	if p.Kind != "oidc" {
		return fmt.Errorf("kind: %q is not one of oidc", p.Kind)
	}
	u, err := url.Parse(p.Issuer)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("issuer is not a URL of the form https://host/path")
	}
	if p.ClientID == "" {
		return errors.New("client_id is missing")
	}
	if p.ClientSecret != "" && p.ClientSecretFile != "" {
		return errors.New("client_secret and client_secret_file exclude each other")
	}
	if p.ClientSecretFile != "" {
		text, err := os.ReadFile(p.ClientSecretFile)
		if err != nil {
			return errors.New("client_secret_file cannot be read")
		}
		p.ClientSecret = Secret(strings.TrimSpace(string(text)))
	}
	if p.ClientSecret == "" {
		return errors.New("client_secret or client_secret_file is missing")
	}
	if !slices.Contains(p.Scopes, "openid") {
		return errors.New("scopes must include openid")
	}
	if max(len(p.RequiredGroups), len(p.AdminGroups), len(p.AuditorGroups), len(p.GroupSync)) > maxMappings {
		return fmt.Errorf("a list of groups has more than %d entries", maxMappings)
	}
	for i, m := range p.GroupSync {
		p.GroupSync[i].Group = strings.Trim(m.Group, "/")
		if m.Claim == "" || p.GroupSync[i].Group == "" || !slices.Contains(syncRoles(), m.Role) {
			return fmt.Errorf("group_sync needs claim, group and role, which is one of %s", strings.Join(syncRoles(), ", "))
		}
	}
	return nil
}
