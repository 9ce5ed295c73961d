package api

import (
	"svc/internal/bind"
	"svc/internal/packages"
	"svc/internal/project"
)

func (a *API) packageRuleRoutes() {
	a.tag("Protected packages")
	const at = "/projects/{id}/packages/protection/rules"
	handle(a, "GET "+at, readAPI, a.listPackageRules, summary("List package protection rules"))
	handle(a, "POST "+at, writeAPI, a.createPackageRule, summary("Create a package protection rule"))
	handle(a, "PATCH "+at+"/{package_protection_rule_id}", writeAPI, a.updatePackageRule, summary("Update a package protection rule"))
	handle(a, "DELETE "+at+"/{package_protection_rule_id}", writeAPI, a.deletePackageRule, summary("Delete a package protection rule"))
}

type listPackageRulesParams struct {
	projectParams
	pageParams
}

// listPackageRules: https://docs.gitlab.com/api/project_packages_protection_rules/#list-package-protection-rules
func (a *API) listPackageRules(c *call, p listPackageRulesParams) (page[packageRuleJSON], error) {
	return offsetList(p.pageParams, toPackageRule)(a.Packages.Rules(c, c.actor, p.Project, p.paging()))
}

// ruleLevels are the access levels of rules by name. Clients also send numbers.
var ruleLevels = map[string]project.Level{
	"": 0, "maintainer": project.Maintainer, "owner": project.Owner, "admin": packages.AdminLevel,
	"40": project.Maintainer, "50": project.Owner, "60": packages.AdminLevel,
}

type packageRuleParams struct {
	Push   bind.Opt[string] `param:"minimum_access_level_for_push" enum:"maintainer,owner,admin,40,50,60," doc:"Minimum role to publish. Empty for no rule."`
	Delete bind.Opt[string] `param:"minimum_access_level_for_delete" enum:"owner,admin,50,60," doc:"Minimum role to delete. Empty for no rule."`
}

func (p *packageRuleParams) apply(r *packages.Rule) {
	if p.Push.Set {
		r.PushLevel = ruleLevels[p.Push.Value]
	}
	if p.Delete.Set {
		r.DeleteLevel = ruleLevels[p.Delete.Value]
	}
}

type createPackageRuleParams struct {
	projectParams
	Pattern string `param:"package_name_pattern,required" doc:"Package name. * stands for any characters."`
	Type    string `param:"package_type,required" enum:"generic,npm,pypi"`
	packageRuleParams
}

// createPackageRule: https://docs.gitlab.com/api/project_packages_protection_rules/#create-a-package-protection-rule
func (a *API) createPackageRule(c *call, p createPackageRuleParams) (packageRuleJSON, error) {
	r := packages.Rule{Type: packages.Type(p.Type), Pattern: p.Pattern}
	p.apply(&r)
	made, err := a.Packages.CreateRule(c, c.actor, p.Project, r)
	if err != nil {
		return packageRuleJSON{}, err
	}
	return toPackageRule(made), nil
}

type onePackageRuleParams struct {
	projectParams
	Rule int64 `param:"package_protection_rule_id"`
}

type updatePackageRuleParams struct {
	onePackageRuleParams
	Pattern *string `param:"package_name_pattern" doc:"Package name. * stands for any characters."`
	Type    *string `param:"package_type" enum:"generic,npm,pypi"`
	packageRuleParams
}

// updatePackageRule: https://docs.gitlab.com/api/project_packages_protection_rules/#update-a-package-protection-rule
func (a *API) updatePackageRule(c *call, p updatePackageRuleParams) (packageRuleJSON, error) {
	r, err := a.Packages.UpdateRule(c, c.actor, p.Project, p.Rule, func(r *packages.Rule) {
		if p.Pattern != nil {
			r.Pattern = *p.Pattern
		}
		if p.Type != nil {
			r.Type = packages.Type(*p.Type)
		}
		p.apply(r)
	})
	if err != nil {
		return packageRuleJSON{}, err
	}
	return toPackageRule(r), nil
}

// deletePackageRule: https://docs.gitlab.com/api/project_packages_protection_rules/#delete-a-package-protection-rule
func (a *API) deletePackageRule(c *call, p onePackageRuleParams) (none, error) {
	return none{}, a.Packages.DeleteRule(c, c.actor, p.Project, p.Rule)
}

// packageRuleJSON is a package protection rule.
type packageRuleJSON struct {
	ID        int64   `json:"id"`
	ProjectID int64   `json:"project_id"`
	Pattern   string  `json:"package_name_pattern"`
	Type      string  `json:"package_type"`
	Delete    *string `json:"minimum_access_level_for_delete"`
	Push      *string `json:"minimum_access_level_for_push"`
}

func toPackageRule(r *packages.Rule) packageRuleJSON {
	return packageRuleJSON{r.ID, r.ProjectID, r.Pattern, string(r.Type), ruleLevel(r.DeleteLevel), ruleLevel(r.PushLevel)}
}

func ruleLevel(l project.Level) *string {
	return textOrNull(map[project.Level]string{project.Maintainer: "maintainer", project.Owner: "owner", packages.AdminLevel: "admin"}[l])
}
