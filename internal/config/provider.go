package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Provider is an identity provider that users sign in with.
type Provider struct {
	Name  string `yaml:"name"`  // in URLs and in the identities of users
	Label string `yaml:"label"` // on pages; empty: the name
	Kind  string `yaml:"kind"`  // oidc, saml or ldap

	// Of an OpenID provider.
	Issuer           string   `yaml:"issuer"`
	ClientID         string   `yaml:"client_id"`
	ClientSecret     Secret   `yaml:"client_secret"`
	ClientSecretFile string   `yaml:"client_secret_file"` // read at startup, instead of ClientSecret
	Scopes           []string `yaml:"scopes"`
	UsernameClaim    string   `yaml:"username_claim"`
	GroupsClaim      string   `yaml:"groups_claim"`

	// Of a SAML identity provider.
	MetadataURL        string `yaml:"metadata_url"` // this, the file or the three below are required
	MetadataFile       string `yaml:"metadata_file"`
	IDPEntityID        string `yaml:"idp_entity_id"`
	IDPSSOURL          string `yaml:"idp_sso_url"`
	IDPCertificateFile string `yaml:"idp_certificate_file"`
	EntityID           string `yaml:"entity_id"` // of this instance; empty: the URL of its metadata
	KeyFile            string `yaml:"key_file"`  // signs requests and decrypts assertions
	CertificateFile    string `yaml:"certificate_file"`
	NameIDFormat       string `yaml:"name_id_format"`
	IDAttribute        string `yaml:"id_attribute"` // has the identity; empty: the name ID

	// The contents of the files of a SAML identity provider.
	Metadata        []byte              `yaml:"-"`
	IDPCertificates []*x509.Certificate `yaml:"-"`
	KeyPair         *tls.Certificate    `yaml:"-"`

	// Of an LDAP directory.
	URL              string `yaml:"url"` // ldap:// or ldaps://
	StartTLS         bool   `yaml:"start_tls"`
	BindDN           string `yaml:"bind_dn"` // of the account that searches; empty: anonymous
	BindPassword     Secret `yaml:"bind_password"`
	BindPasswordFile string `yaml:"bind_password_file"` // read at startup, instead of BindPassword
	Base             string `yaml:"base"`
	UserFilter       string `yaml:"user_filter"`
	GroupBase        string `yaml:"group_base"` // set: groups are searched, instead of GroupsAttribute
	GroupFilter      string `yaml:"group_filter"`
	GroupAttribute   string `yaml:"group_attribute"`

	// Of SAML and LDAP providers.
	UsernameAttribute string `yaml:"username_attribute"`
	NameAttribute     string `yaml:"name_attribute"`
	EmailAttribute    string `yaml:"email_attribute"`
	GroupsAttribute   string `yaml:"groups_attribute"`

	CAFile string `yaml:"ca_file"` // empty: the CA certificates of the system

	AutoCreate      bool `yaml:"auto_create"`
	RequireApproval bool `yaml:"require_approval"` // of users that were created
	LinkByEmail     bool `yaml:"link_by_email"`
	TrustEmail      bool `yaml:"trust_email"` // email addresses are treated as verified even if the provider does not say so
	TrustTwoFactor  bool `yaml:"trust_two_factor"`

	RequiredGroups []string    `yaml:"required_groups"`
	AdminGroups    []string    `yaml:"admin_groups"`
	AuditorGroups  []string    `yaml:"auditor_groups"`
	GroupSync      []GroupSync `yaml:"group_sync"`
}

// GroupSync gives the users of a group of the provider a role in a group of this
// instance.
type GroupSync struct {
	Claim string `yaml:"claim"` // value in the groups claim
	Group string `yaml:"group"` // full path
	Role  string `yaml:"role"`
}

// Providers are all identity providers. They are formatted as a list of names.
type Providers []Provider

// String returns the names.
func (p Providers) String() string {
	var names []string
	for _, one := range p {
		names = append(names, one.Name)
	}
	return strings.Join(names, ",")
}

// Format writes String for every verb, including %d and %#v.
func (p Providers) Format(f fmt.State, _ rune) { writeState(f, p.String()) }

// MarshalText keeps the client secrets out of JSON, YAML and logs.
func (p Providers) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

const (
	maxProviders = 20
	maxMappings  = 500 // of groups, for each list of one provider
)

// syncRoles returns the roles that are allowed in group_sync.
func syncRoles() []string {
	return []string{"guest", "planner", "reporter", "developer", "maintainer", "owner"}
}

// parseProviders parses a YAML list; JSON is a subset of YAML. Its errors do not
// quote the text, which contains secrets.
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

// The kinds of providers.
const (
	OIDC = "oidc"
	SAML = "saml"
	LDAP = "ldap"
)

// newProvider returns the defaults of a kind.
func newProvider(kind string) Provider {
	p := Provider{Kind: kind, AutoCreate: true, RequireApproval: true}
	switch kind {
	case OIDC:
		p.Scopes, p.UsernameClaim, p.GroupsClaim = []string{"openid", "profile", "email"}, "preferred_username", "groups"
		p.TrustTwoFactor = true
	case SAML:
		p.UsernameAttribute, p.NameAttribute, p.EmailAttribute, p.GroupsAttribute = "username", "name", "email", "groups"
		p.TrustTwoFactor = true
	case LDAP:
		p.StartTLS, p.UserFilter, p.UsernameAttribute, p.NameAttribute, p.EmailAttribute = true, "(objectClass=person)", "uid", "cn", "mail"
		p.GroupsAttribute, p.GroupFilter, p.GroupAttribute = "memberOf", "(|(member={dn})(uniqueMember={dn}))", "cn"
		// The organization manages the addresses in the directory. LDAP has no
		// second factor.
		p.TrustEmail = true
	}
	return p
}

// kindOf returns the value of the key kind of a mapping.
func kindOf(node *yaml.Node) string {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == "kind" {
			return node.Content[i+1].Value
		}
	}
	return ""
}

func parseProvider(node *yaml.Node) (Provider, error) {
	if node.Kind != yaml.MappingNode {
		return Provider{}, errors.New("is not a mapping")
	}
	p := newProvider(kindOf(node))
	known := providerKeys()
	var misplaced []string
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
		if err := value.Decode(place.field(&p)); err != nil {
			return p, fmt.Errorf("%s has a value of the wrong type", key)
		}
		if len(place.kinds) > 0 && !slices.Contains(place.kinds, p.Kind) {
			misplaced = append(misplaced, key)
		}
	}
	if err := p.check(); err != nil {
		return p, err
	}
	if len(misplaced) > 0 {
		return p, fmt.Errorf("%s is not an option of the kind %s", strings.Join(misplaced, ", "), p.Kind)
	}
	return p, nil
}

// providerKey is a key of a provider.
type providerKey struct {
	kinds []string // of the providers that have it; nil: all
	field func(*Provider) any
}

// providerKeys are the keys of a provider and their fields.
func providerKeys() map[string]providerKey {
	oidc, saml, ldap, both := []string{OIDC}, []string{SAML}, []string{LDAP}, []string{SAML, LDAP}
	return map[string]providerKey{
		"name":             {nil, func(p *Provider) any { return &p.Name }},
		"label":            {nil, func(p *Provider) any { return &p.Label }},
		"kind":             {nil, func(p *Provider) any { return &p.Kind }},
		"ca_file":          {nil, func(p *Provider) any { return &p.CAFile }},
		"auto_create":      {nil, func(p *Provider) any { return &p.AutoCreate }},
		"require_approval": {nil, func(p *Provider) any { return &p.RequireApproval }},
		"link_by_email":    {nil, func(p *Provider) any { return &p.LinkByEmail }},
		"trust_email":      {nil, func(p *Provider) any { return &p.TrustEmail }},
		"trust_two_factor": {nil, func(p *Provider) any { return &p.TrustTwoFactor }},
		"required_groups":  {nil, func(p *Provider) any { return &p.RequiredGroups }},
		"admin_groups":     {nil, func(p *Provider) any { return &p.AdminGroups }},
		"auditor_groups":   {nil, func(p *Provider) any { return &p.AuditorGroups }},
		"group_sync":       {nil, func(p *Provider) any { return &p.GroupSync }},

		"issuer":             {oidc, func(p *Provider) any { return &p.Issuer }},
		"client_id":          {oidc, func(p *Provider) any { return &p.ClientID }},
		"client_secret":      {oidc, func(p *Provider) any { return &p.ClientSecret }},
		"client_secret_file": {oidc, func(p *Provider) any { return &p.ClientSecretFile }},
		"scopes":             {oidc, func(p *Provider) any { return &p.Scopes }},
		"username_claim":     {oidc, func(p *Provider) any { return &p.UsernameClaim }},
		"groups_claim":       {oidc, func(p *Provider) any { return &p.GroupsClaim }},

		"metadata_url":         {saml, func(p *Provider) any { return &p.MetadataURL }},
		"metadata_file":        {saml, func(p *Provider) any { return &p.MetadataFile }},
		"idp_entity_id":        {saml, func(p *Provider) any { return &p.IDPEntityID }},
		"idp_sso_url":          {saml, func(p *Provider) any { return &p.IDPSSOURL }},
		"idp_certificate_file": {saml, func(p *Provider) any { return &p.IDPCertificateFile }},
		"entity_id":            {saml, func(p *Provider) any { return &p.EntityID }},
		"key_file":             {saml, func(p *Provider) any { return &p.KeyFile }},
		"certificate_file":     {saml, func(p *Provider) any { return &p.CertificateFile }},
		"name_id_format":       {saml, func(p *Provider) any { return &p.NameIDFormat }},
		"id_attribute":         {saml, func(p *Provider) any { return &p.IDAttribute }},

		"url":                {ldap, func(p *Provider) any { return &p.URL }},
		"start_tls":          {ldap, func(p *Provider) any { return &p.StartTLS }},
		"bind_dn":            {ldap, func(p *Provider) any { return &p.BindDN }},
		"bind_password":      {ldap, func(p *Provider) any { return &p.BindPassword }},
		"bind_password_file": {ldap, func(p *Provider) any { return &p.BindPasswordFile }},
		"base":               {ldap, func(p *Provider) any { return &p.Base }},
		"user_filter":        {ldap, func(p *Provider) any { return &p.UserFilter }},
		"username_attribute": {both, func(p *Provider) any { return &p.UsernameAttribute }},
		"name_attribute":     {both, func(p *Provider) any { return &p.NameAttribute }},
		"email_attribute":    {both, func(p *Provider) any { return &p.EmailAttribute }},
		"groups_attribute":   {both, func(p *Provider) any { return &p.GroupsAttribute }},
		"group_base":         {ldap, func(p *Provider) any { return &p.GroupBase }},
		"group_filter":       {ldap, func(p *Provider) any { return &p.GroupFilter }},
		"group_attribute":    {ldap, func(p *Provider) any { return &p.GroupAttribute }},
	}
}

// check sets the remaining defaults of a provider and returns an error for an
// invalid one.
func (p *Provider) check() error {
	if _, err := parseName(p.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if p.Label == "" {
		p.Label = p.Name
	}
	var err error
	switch p.Kind {
	case OIDC:
		err = p.checkOIDC()
	case SAML:
		err = p.checkSAML()
	case LDAP:
		err = p.checkLDAP()
	default:
		err = fmt.Errorf("kind: %q is not one of %s, %s, %s", p.Kind, OIDC, SAML, LDAP)
	}
	if err != nil {
		return err
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

func (p *Provider) checkOIDC() error {
	u, err := url.Parse(p.Issuer)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("issuer is not a URL of the form https://host/path")
	}
	if p.ClientID == "" {
		return errors.New("client_id is missing")
	}
	if err := p.ClientSecret.fromFile("client_secret", p.ClientSecretFile); err != nil {
		return err
	}
	if p.ClientSecret == "" {
		return errors.New("client_secret or client_secret_file is missing")
	}
	if !slices.Contains(p.Scopes, "openid") {
		return errors.New("scopes must include openid")
	}
	return nil
}

// attributeName matches the name of an LDAP attribute.
var attributeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,63}$`)

func (p *Provider) checkLDAP() error {
	u, err := url.Parse(p.URL)
	if err != nil || u.Scheme != "ldap" && u.Scheme != "ldaps" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return errors.New("url is not of the form ldaps://host or ldap://host")
	}
	if u.Scheme == "ldaps" {
		p.StartTLS = false
	}
	if p.Base == "" {
		return errors.New("base is missing")
	}
	if err := p.BindPassword.fromFile("bind_password", p.BindPasswordFile); err != nil {
		return err
	}
	if (p.BindDN == "") != (p.BindPassword == "") {
		return errors.New("bind_dn needs bind_password or bind_password_file, and the other way around")
	}
	for _, a := range []struct{ key, value string }{
		{"username_attribute", p.UsernameAttribute}, {"name_attribute", p.NameAttribute}, {"email_attribute", p.EmailAttribute},
		{"groups_attribute", p.GroupsAttribute}, {"group_attribute", p.GroupAttribute},
	} {
		if !attributeName.MatchString(a.value) {
			return fmt.Errorf("%s is not the name of an attribute", a.key)
		}
	}
	for _, f := range []struct{ key, value string }{{"user_filter", p.UserFilter}, {"group_filter", p.GroupFilter}} {
		if !strings.HasPrefix(f.value, "(") || !strings.HasSuffix(f.value, ")") {
			return fmt.Errorf("%s is not a filter in parentheses", f.key)
		}
	}
	if p.GroupBase != "" && !strings.Contains(p.GroupFilter, "{dn}") && !strings.Contains(p.GroupFilter, "{username}") {
		return errors.New("group_filter must include {dn} or {username}")
	}
	return nil
}

// fromFile reads a secret from a file, if one is given. key is the name of its
// option.
func (s *Secret) fromFile(key, file string) error {
	if file == "" {
		return nil
	}
	if *s != "" {
		return fmt.Errorf("%[1]s and %[1]s_file exclude each other", key)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s_file cannot be read", key)
	}
	*s = Secret(strings.TrimSpace(string(text)))
	return nil
}
