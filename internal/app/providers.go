package app

import (
	"svc/internal/config"
	"svc/internal/project"
	"svc/internal/signin"
)

// providers returns the identity providers of the configuration.
func (a *App) providers() []signin.Provider {
	levels := map[string]project.Level{
		"guest": project.Guest, "planner": project.Planner, "reporter": project.Reporter, "developer": project.Developer,
		"maintainer": project.Maintainer, "owner": project.Owner,
	}
	var list []signin.Provider
	for _, p := range a.Config.Providers {
		one := signin.Provider{
			Name: p.Name, Label: p.Label, CAFile: p.CAFile, AutoCreate: p.AutoCreate, RequireApproval: p.RequireApproval,
			LinkByEmail: p.LinkByEmail, TrustEmail: p.TrustEmail, TrustTwoFactor: p.TrustTwoFactor,
			RequiredGroups: p.RequiredGroups, AdminGroups: p.AdminGroups, AuditorGroups: p.AuditorGroups,
		}
		switch p.Kind {
		case config.OIDC:
			one.OpenID = &signin.OpenID{
				Issuer: p.Issuer, ClientID: p.ClientID, ClientSecret: string(p.ClientSecret), Scopes: p.Scopes,
				UsernameClaim: p.UsernameClaim, GroupsClaim: p.GroupsClaim,
			}
		case config.SAML:
			one.SAML = &signin.SAML{
				MetadataURL: p.MetadataURL, Metadata: p.Metadata, IDPEntityID: p.IDPEntityID, IDPSSOURL: p.IDPSSOURL, IDPCertificates: p.IDPCertificates,
				EntityID: p.EntityID, KeyPair: p.KeyPair, NameIDFormat: p.NameIDFormat, IDAttribute: p.IDAttribute,
				UsernameAttribute: p.UsernameAttribute, NameAttribute: p.NameAttribute, EmailAttribute: p.EmailAttribute, GroupsAttribute: p.GroupsAttribute,
			}
		case config.LDAP:
			one.LDAP = &signin.LDAP{
				URL: p.URL, StartTLS: p.StartTLS, BindDN: p.BindDN, BindPassword: string(p.BindPassword), Base: p.Base, UserFilter: p.UserFilter,
				UsernameAttribute: p.UsernameAttribute, NameAttribute: p.NameAttribute, EmailAttribute: p.EmailAttribute,
				GroupsAttribute: p.GroupsAttribute, GroupBase: p.GroupBase, GroupFilter: p.GroupFilter, GroupAttribute: p.GroupAttribute,
			}
		}
		for _, m := range p.GroupSync {
			one.GroupSync = append(one.GroupSync, signin.GroupSync{Claim: m.Claim, Group: m.Group, Level: levels[m.Role]})
		}
		list = append(list, one)
	}
	return list
}
