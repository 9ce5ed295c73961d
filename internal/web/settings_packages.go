package web

import (
	"strconv"
	"strings"

	"svc/internal/packages"
	"svc/internal/project"
)

// packageSettingsPage has the package settings of a project or group.
type packageSettingsPage struct {
	setup
	Form  form // of the settings
	New   form // another rule
	Off   bool // the registry of the project is disabled
	Rules []*packages.Rule
	Keep  []option
	Types []option
	Push  []option
	Erase []option
}

func (packageSettingsPage) view() string    { return "shared/settings_packages" }
func (p packageSettingsPage) title() string { return "Packages and registries · " + p.Name() }

func (w *Web) packageSettings(v *visit, in project.Place) error {
	return w.showPackageSettings(v, in, filled())
}

func (w *Web) showPackageSettings(v *visit, in project.Place, f form) error {
	s, err := w.setup(v, in, "packages_and_registries")
	if err != nil {
		return err
	}
	p := packageSettingsPage{setup: s, New: f, Types: packageTypes()}
	if in.Group {
		rules, err := w.Packages.GroupSettings(v, v.actor, in.Ref)
		if err != nil {
			return err
		}
		p.Form = filled("generic_duplicates_allowed", on(rules.GenericDuplicatesAllowed), "generic_duplicate_exception_regex", rules.GenericDuplicateExcept)
		if f.Error != "" || len(f.Errors) > 0 {
			p.Form = f
		}
		return v.showForm(p, f)
	}
	if p.Off = s.P.Project.Settings.PackageRegistry == project.Disabled; p.Off {
		return v.showForm(p, f)
	}
	policy, err := w.Packages.Policy(v, v.actor, in.Ref)
	if err != nil {
		return err
	}
	p.Form = filled("keep", strconv.Itoa(policy.Keep))
	for _, n := range packages.KeepChoices() {
		label := strconv.Itoa(n)
		if n == 0 {
			label = "All"
		}
		p.Keep = append(p.Keep, option{strconv.Itoa(n), label})
	}
	page, err := w.Packages.Rules(v, v.actor, in.Ref, allOf())
	if err != nil {
		return err
	}
	p.Rules = page.Items
	p.Push, p.Erase = levelOptions("Developer", packages.PushLevels()), levelOptions("Maintainer", packages.DeleteLevels())
	return v.showForm(p, f)
}

// levelOptions are the roles that a rule may require. The first one is that without a
// rule.
func levelOptions(first string, levels []project.Level) []option {
	list := []option{{"0", first + " (default)"}}
	for _, l := range levels {
		list = append(list, option{strconv.FormatInt(int64(l), 10), ruleLevelName(l)})
	}
	return list
}

func ruleLevelName(l project.Level) string {
	if l == packages.AdminLevel {
		return "Administrator"
	}
	return l.String()
}

func (w *Web) savePackageSettings(v *visit, in project.Place) error {
	const done = "The package settings were saved."
	to := settingsOf(in, "packages_and_registries")
	if in.Group {
		err := w.Packages.SetGroupSettings(v, v.actor, in.Ref, packages.Settings{
			GenericDuplicatesAllowed: v.ticked("generic_duplicates_allowed"), GenericDuplicateExcept: v.text("generic_duplicate_exception_regex"),
		})
		return v.redirectWithFlash(err, done, to)
	}
	var f form
	return v.redirectWithFlash(w.Packages.SetPolicy(v, v.actor, in.Ref, int(v.whole(&f, "keep"))), done, to)
}

func (w *Web) createPackageRule(v *visit, in project.Place) error {
	var f form
	_, err := w.Packages.CreateRule(v, v.actor, in.Ref, packages.Rule{
		Pattern: v.text("name_pattern"), Type: packages.Type(v.text("package_type")),
		PushLevel: project.Level(v.whole(&f, "push")), DeleteLevel: project.Level(v.whole(&f, "delete")),
	})
	return v.redirectWithFlash(err, "The protection rule was added.", settingsOf(in, "packages_and_registries"))
}

func (w *Web) deletePackageRule(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Packages.DeleteRule(v, v.actor, in.Ref, id), "The protection rule was deleted.", settingsOf(in, "packages_and_registries"))
}

// cutScheme splits a URL into its scheme and the rest.
func cutScheme(address string) (scheme, rest string, ok bool) { return strings.Cut(address, "://") }

// cutScope splits the name of an npm package into its scope and the rest.
func cutScope(name string) (scope, rest string, ok bool) { return strings.Cut(name, "/") }

// withUser adds the user and password of a token to a URL.
func withUser(address string) string {
	scheme, rest, _ := cutScheme(address)
	return scheme + "://__token__:<your_token>@" + rest
}
