package web

import (
	"strconv"
	"strings"

	"svc/internal/ci/deployment"
	"svc/internal/db"
	"svc/internal/project"
)

func (w *Web) environmentSettingsPages() {
	w.settingsPage("GET settings/environments", w.environmentSettings)
	w.settingsPage("POST settings/environments", w.protectEnvironment)
	w.settingsPage("POST settings/environments/unprotect", w.unprotectEnvironment)
	w.projectPage("POST settings/environments/freezes", signedIn, ofProject(w.createFreeze))
	w.projectPage("POST settings/environments/freezes/{id}/delete", signedIn, ofProject(w.deleteFreeze))
	w.projectPage("POST settings/environments/approvals", signedIn, ofProject(w.saveApprovalSetting))
}

// environmentSettingsPage is the protected environments of a project or group,
// and the deploy freezes of a project.
type environmentSettingsPage struct {
	setup
	Form      form
	Freeze    form
	Protected []*deployment.ProtectedEnvironment
	Freezes   []*deployment.FreezePeriod
	Names     []string // of environments to protect
	Self      bool     // the user who starts a pipeline may approve
	Pager     pager
}

func (environmentSettingsPage) view() string    { return "shared/settings_environments" }
func (p environmentSettingsPage) title() string { return "Environments · " + p.Name() }

// Roles are the roles that can be allowed to deploy.
func (environmentSettingsPage) Roles() []option {
	return []option{{"40", "Maintainers"}, {"30", "Developers and maintainers"}, {"60", "Administrators"}, {"", "No role"}}
}

// Approvers are the roles of approval rules.
func (environmentSettingsPage) Approvers() []option {
	return []option{{"", "Everyone who is allowed to deploy"}, {"40", "Maintainers"}, {"30", "Developers and maintainers"}}
}

// Who describes the rules.
func (environmentSettingsPage) Who(rules []*deployment.EnvironmentRule) string {
	var names []string
	for _, r := range rules {
		text := r.Description()
		if r.Required > 0 {
			text += " (" + plural(int(r.Required), "approval") + ")"
		}
		names = append(names, text)
	}
	return strings.Join(names, ", ")
}

func (w *Web) environmentSettings(v *visit, in project.Place) error {
	return w.showEnvironmentSettings(v, in, filled("access_level", "40", "required", "0"), filled("cron_timezone", "UTC"))
}

func (w *Web) showEnvironmentSettings(v *visit, in project.Place, f, freeze form) error {
	s, err := w.setup(v, in, "environments")
	if err != nil {
		return err
	}
	f.only("name")
	freeze.only("freeze_start", "freeze_end", "cron_timezone")
	p := environmentSettingsPage{setup: s, Form: f, Freeze: freeze}
	found, err := w.CI.Deployments.Protected(v, v.actor, in, v.paging())
	if err != nil {
		return err
	}
	p.Protected, p.Pager = found.Items, v.pager(found.More)
	if in.Group {
		p.Names = deployment.Tiers()
	} else {
		p.Self = s.P.Project.Settings.CITriggererMayApprove
		list, err := w.CI.Deployments.Environments(v, v.actor, in.Ref, deployment.EnvironmentFilter{}, db.Paging{Limit: 100})
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			p.Names = append(p.Names, e.Name)
		}
		freezes, err := w.CI.Deployments.FreezePeriods(v, v.actor, in.Ref, db.Paging{Limit: 100})
		if err != nil {
			return err
		}
		p.Freezes = freezes.Items
	}
	if freeze.Error != "" || len(freeze.Errors) > 0 {
		return v.showForm(p, freeze)
	}
	return v.showForm(p, f)
}

// namedUsers are the IDs of the users whose names a form has, separated by commas.
func (w *Web) namedUsers(v *visit, f *form, text string) []int64 {
	var ids []int64
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimPrefix(strings.TrimSpace(name), "@"); name == "" {
			continue
		}
		found, _, err := w.Projects.NamedOwners(v, []string{strings.ToLower(name)})
		if id, ok := found[strings.ToLower(name)]; ok && err == nil {
			ids = append(ids, id)
		} else {
			f.Error = "There is no user " + name + "."
		}
	}
	return ids
}

func (w *Web) protectEnvironment(v *visit, in project.Place) error {
	f := v.sent()
	var c deployment.ProtectionChange
	role := func(name string) *project.Level {
		n, err := strconv.ParseInt(v.text(name), 10, 64)
		if err != nil {
			return nil
		}
		level := project.Level(n)
		return &level
	}
	if level := role("access_level"); level != nil {
		c.Deploy = append(c.Deploy, deployment.RuleChange{Level: level})
	}
	for _, id := range w.namedUsers(v, &f, v.text("users")) {
		c.Deploy = append(c.Deploy, deployment.RuleChange{UserID: &id})
	}
	required := v.whole(&f, "required")
	if level := role("approvers"); level != nil && required > 0 {
		c.Approve = append(c.Approve, deployment.RuleChange{Level: level, Required: &required})
	} else {
		c.RequiredApprovals = &required
	}
	if f.Error == "" && len(f.Errors) == 0 {
		_, err := w.CI.Deployments.Protect(v, v.actor, in, v.text("name"), c)
		if err == nil {
			return v.done("The environment was protected.", settingsOf(in, "environments"))
		}
		if err := f.refused(err); err != nil {
			return err
		}
	}
	return w.showEnvironmentSettings(v, in, f, filled("cron_timezone", "UTC"))
}

func (w *Web) unprotectEnvironment(v *visit, in project.Place) error {
	return v.redirectWithFlash(w.CI.Deployments.Unprotect(v, v.actor, in, v.text("name")), "The environment is no longer protected.", settingsOf(in, "environments"))
}

func (w *Web) createFreeze(v *visit, in project.Place) error {
	start, end, zone := v.text("freeze_start"), v.text("freeze_end"), v.text("cron_timezone")
	if zone == "" {
		zone = "UTC"
	}
	_, err := w.CI.Deployments.CreateFreezePeriod(v, v.actor, in.Ref, deployment.FreezeChange{Start: &start, End: &end, Timezone: &zone})
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showEnvironmentSettings(v, in, filled("access_level", "40", "required", "0"), f)
	}
	return v.done("The deploy freeze was added.", settingsOf(in, "environments"))
}

func (w *Web) deleteFreeze(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.CI.Deployments.DeleteFreezePeriod(v, v.actor, in.Ref, id), "The deploy freeze was deleted.", settingsOf(in, "environments"))
}

// saveApprovalSetting sets whether the user who starts a pipeline may approve its
// deployments.
func (w *Web) saveApprovalSetting(v *visit, in project.Place) error {
	may := v.ticked("self")
	_, err := w.Projects.Update(v, v.actor, in.Ref, project.Change{Fields: project.Fields{
		Settings: func(s *project.Settings) { s.CITriggererMayApprove = may },
	}})
	return v.redirectWithFlash(err, "The settings were saved.", settingsOf(in, "environments"))
}
