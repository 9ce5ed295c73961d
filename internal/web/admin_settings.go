package web

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"svc/internal/setting"
)

const settingsAt = "/admin/application_settings"

func (w *Web) adminSettingsPages() {
	w.page("GET "+settingsAt, admins, w.adminSettings)
	w.page("POST "+settingsAt, admins, w.saveAdminSettings)
	w.page("GET "+settingsAt+"/general", admins, func(v *visit) error { return v.redirect(settingsAt) })
}

type adminSettingsPage struct {
	Form     form
	Sections []settingSection
}

func (adminSettingsPage) view() string  { return "admin/settings" }
func (adminSettingsPage) title() string { return "Settings · Admin area" }

// settingSection is a section of the page.
type settingSection struct{ setting.Section }

// Boxes are the settings of the section that are checkboxes.
func (s settingSection) Boxes() []setting.Setting { return those[*bool](s) }

// Numbers are the numeric settings of the section.
func (s settingSection) Numbers() []setting.Setting { return those[*int](s) }

// Texts are the settings of the section that are shown to users.
func (s settingSection) Texts() []setting.Setting { return those[*string](s) }

// Lists are the settings of the section that are lists of hosts, or of storages
// with their weights.
func (s settingSection) Lists() []setting.Setting {
	return append(those[*[]string](s), those[*setting.Weights](s)...)
}

// Confirmations are the settings about the confirmation of email addresses.
func (s settingSection) Confirmations() []setting.Setting { return those[*setting.Confirmation](s) }

func those[T any](s settingSection) []setting.Setting {
	var list []setting.Setting
	for _, i := range s.Settings {
		if _, ok := i.Value.(T); ok {
			list = append(list, i)
		}
	}
	return list
}

// Demands are the options for the confirmation of email addresses.
func (adminSettingsPage) Demands() []option {
	return []option{
		{Value: string(setting.ConfirmOff), Label: "Off"},
		{Value: string(setting.ConfirmSoft), Label: "Soft: required after " + plural(setting.SoftDays, "day")},
		{Value: string(setting.ConfirmHard), Label: "Hard: required before first sign-in"},
	}
}

// settingSections returns the sections with the values of s.
func settingSections(s *setting.Settings) []settingSection {
	var list []settingSection
	for _, section := range s.Table() {
		list = append(list, settingSection{section})
	}
	return list
}

func (w *Web) adminSettings(v *visit) error {
	s, err := w.Settings.Get(v, v.actor)
	if err != nil {
		return err
	}
	p := adminSettingsPage{Form: filled(), Sections: settingSections(&s)}
	for _, section := range p.Sections {
		for _, i := range section.Settings {
			switch value := i.Value.(type) {
			case *bool:
				p.Form.Values.Set(i.Name, on(*value))
			case *int:
				p.Form.Values.Set(i.Name, strconv.Itoa(*value))
			case *string:
				p.Form.Values.Set(i.Name, *value)
			case *[]string:
				p.Form.Values.Set(i.Name, strings.Join(*value, ", "))
			case *setting.Weights:
				p.Form.Values.Set(i.Name, weightsText(*value))
			case *setting.Confirmation:
				p.Form.Values.Set(i.Name, string(*value))
			}
		}
	}
	return v.show(p)
}

func (w *Web) saveAdminSettings(v *visit) error {
	f := v.sent()
	v.readSettings(&f, &setting.Settings{}) // finds invalid numbers before anything is changed
	if f.bad() {
		return v.again(adminSettingsPage{f, settingSections(&setting.Settings{})})
	}
	_, err := w.Settings.Update(v, v.actor, func(s *setting.Settings) { v.readSettings(&f, s) })
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return v.again(adminSettingsPage{f, settingSections(&setting.Settings{})})
	}
	return v.done("The settings were saved.", settingsAt)
}

// readSettings applies the submitted form to the settings.
func (v *visit) readSettings(f *form, s *setting.Settings) {
	for _, section := range settingSections(s) {
		for _, i := range section.Settings {
			switch value := i.Value.(type) {
			case *bool:
				*value = v.ticked(i.Name)
			case *int:
				*value = int(v.whole(f, i.Name))
			case *string:
				*value = v.text(i.Name)
			case *[]string:
				*value = strings.FieldsFunc(v.text(i.Name), func(r rune) bool { return r == ',' || r == ' ' })
			case *setting.Weights:
				*value = v.weights(f, i.Name)
			case *setting.Confirmation:
				*value = setting.Confirmation(v.text(i.Name))
			}
		}
	}
}

func weightsText(w setting.Weights) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(w)) {
		list = append(list, fmt.Sprintf("%s: %d", name, w[name]))
	}
	return strings.Join(list, ", ")
}

// weights reads names with their weights, as weightsText writes them.
func (v *visit) weights(f *form, name string) setting.Weights {
	w := setting.Weights{}
	for part := range strings.SplitSeq(v.text(name), ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		storage, weight, _ := strings.Cut(part, ":")
		n, err := strconv.Atoi(strings.TrimSpace(weight))
		if err != nil {
			f.wrong(name, "must be names with weights, such as default: 100")
			continue
		}
		w[strings.TrimSpace(storage)] = n
	}
	return w
}
