package web

import (
	"strconv"

	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) protectedPages() {
	w.settingsPage("GET settings/protected", w.protected)
	w.settingsPage("POST settings/protected", w.protect)
	w.settingsPage("POST settings/protected/force", w.allowForce)
	w.settingsPage("POST settings/protected/owners", w.requireOwners)
	w.settingsPage("POST settings/protected/delete", w.unprotect)
	w.pushRulePages()
}

type protectedPage struct {
	setup
	Form     form
	Branches []*repo.Protected
	Tags     []*repo.Protected
	Levels   []option
}

func (protectedPage) view() string { return "shared/settings_protected" }

func (p protectedPage) title() string {
	if p.Place.Group {
		return "Protected branches · " + p.Name()
	}
	return "Protected branches and tags · " + p.Name()
}

// Top reports whether rules can be added: to projects and top-level groups.
func (p protectedPage) Top() bool { return p.G == nil || p.G.Group.ParentID == nil }

func (w *Web) protected(v *visit, in project.Place) error {
	return w.showProtected(v, in, filled("push_level", "40", "merge_level", "40", "create_level", "40"))
}

func (w *Web) showProtected(v *visit, in project.Place, f form) error {
	s, err := w.setup(v, in, "protected")
	if err != nil {
		return err
	}
	p := protectedPage{setup: s, Form: f, Levels: refLevels()}
	if in.Group {
		page, err := w.Repos.GroupProtectedBranches(v, v.actor, in.Ref, "", allOf())
		if err != nil {
			return err
		}
		p.Branches = page.Items
		return v.showForm(p, f)
	}
	for kind, list := range map[repo.RefKind]*[]*repo.Protected{repo.BranchRef: &p.Branches, repo.TagRef: &p.Tags} {
		page, err := w.Repos.ProtectedRefs(v, v.actor, in.Ref, kind, "", allOf())
		if err != nil {
			return err
		}
		*list = page.Items
	}
	return v.showForm(p, f)
}

func refLevels() []option {
	var list []option
	for _, l := range []project.Level{project.Maintainer, project.Developer, project.NoAccess, repo.AdminLevel} {
		list = append(list, option{strconv.FormatInt(int64(l), 10), repo.RefAccess{Level: l}.Description()})
	}
	return list
}

// refKind says which list a form is about.
func (v *visit) refKind() (repo.RefKind, error) {
	kind := repo.RefKind(v.text("kind"))
	if kind != repo.BranchRef && kind != repo.TagRef {
		return "", errs.NotFound("")
	}
	return kind, nil
}

func (w *Web) protect(v *visit, in project.Place) error {
	kind, err := v.refKind()
	if err != nil {
		return err
	}
	n := repo.NewProtected{Name: v.text(string(kind)), AllowForcePush: v.ticked("allow_force_push"), CodeOwnerApproval: v.ticked("code_owner_approval")}
	if kind == repo.BranchRef {
		n.Access = []repo.RefAccess{{Action: repo.PushTo, Level: v.sentLevel("push_level")}, {Action: repo.MergeInto, Level: v.sentLevel("merge_level")}}
	} else {
		n.Access = []repo.RefAccess{{Action: repo.CreateRef, Level: v.sentLevel("create_level")}}
	}
	if in.Group {
		_, err = w.Repos.ProtectInGroup(v, v.actor, in.Ref, n)
	} else {
		_, err = w.Repos.Protect(v, v.actor, in.Ref, kind, n)
	}
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showProtected(v, in, f)
	}
	return v.done(n.Name+" is now protected.", settingsOf(in, "protected"))
}

// changeProtected changes a protected branch of a project or group.
func (w *Web) changeProtected(v *visit, in project.Place, c repo.ProtectedChange, done string) error {
	var err error
	if in.Group {
		_, err = w.Repos.ChangeProtectedInGroup(v, v.actor, in.Ref, v.text("name"), c)
	} else {
		_, err = w.Repos.ChangeProtected(v, v.actor, in.Ref, repo.BranchRef, v.text("name"), c)
	}
	return v.redirectWithFlash(err, done, settingsOf(in, "protected"))
}

func (w *Web) allowForce(v *visit, in project.Place) error {
	allow := v.ticked("allow_force_push")
	done := map[bool]string{true: "Force push is allowed.", false: "Force push is not allowed."}[allow]
	return w.changeProtected(v, in, repo.ProtectedChange{AllowForcePush: &allow}, done)
}

// requireOwners sets whether merges into a branch require the approval of code
// owners.
func (w *Web) requireOwners(v *visit, in project.Place) error {
	required := v.ticked("code_owner_approval")
	done := map[bool]string{true: "Approval from code owners is required.", false: "Approval from code owners is optional."}[required]
	return w.changeProtected(v, in, repo.ProtectedChange{CodeOwnerApproval: &required}, done)
}

func (w *Web) unprotect(v *visit, in project.Place) error {
	kind, err := v.refKind()
	if err != nil {
		return err
	}
	name := v.text("name")
	if in.Group {
		err = w.Repos.UnprotectInGroup(v, v.actor, in.Ref, name)
	} else {
		err = w.Repos.Unprotect(v, v.actor, in.Ref, kind, name)
	}
	return v.redirectWithFlash(err, name+" is no longer protected.", settingsOf(in, "protected"))
}
