package api

import (
	"reflect"
	"strconv"
	"strings"

	"svc/internal/setting"
)

func (a *API) settingRoutes() {
	a.tag("Application settings")
	t := newSettingTypes()
	a.add("GET /application/settings", &endpoint{
		access: readAPI, result: t.result, tag: a.currentTag,
		serve: func(c *call, _ func(into any) error) (any, error) { return a.getSettings(c, t) },
	}, reflect.TypeFor[struct{}](), []option{summary("Get application settings")})
	a.add("PUT /application/settings", &endpoint{
		access: writeAPI, result: t.result, tag: a.currentTag,
		serve: func(c *call, bind func(into any) error) (any, error) { return a.updateSettings(c, t, bind) },
	}, t.params, []option{summary("Update application settings")})
}

// settingTypes are the struct types of the parameters and of the result. Both have a
// field for each setting, in the order of Settings.List; the result has an ID first.
type settingTypes struct{ params, result reflect.Type }

func newSettingTypes() settingTypes {
	in, out := []reflect.StructField{}, []reflect.StructField{{Name: "ID", Type: reflect.TypeFor[int64](), Tag: `json:"id"`}}
	for _, s := range new(setting.Settings).List() {
		name := "Setting" + strings.ReplaceAll(s.Name, "_", "")
		tag := `param:"` + s.Name + `" doc:` + strconv.Quote(s.Doc)
		if _, ok := s.Value.(*setting.Confirmation); ok {
			tag += ` enum:"off,soft,hard"`
		}
		in = append(in, reflect.StructField{Name: name, Type: reflect.TypeOf(s.Value), Tag: reflect.StructTag(tag)})
		out = append(out, reflect.StructField{Name: name, Type: reflect.TypeOf(s.Value).Elem(), Tag: reflect.StructTag(`json:"` + s.Name + `"`)})
	}
	return settingTypes{reflect.StructOf(in), reflect.StructOf(out)}
}

// getSettings: https://docs.gitlab.com/api/settings/#get-details-on-current-application-settings
func (a *API) getSettings(c *call, t settingTypes) (any, error) {
	s, err := a.Settings.Get(c, c.actor)
	if err != nil {
		return nil, err
	}
	return t.of(&s), nil
}

// updateSettings: https://docs.gitlab.com/api/settings/#update-application-settings
func (a *API) updateSettings(c *call, t settingTypes, bind func(into any) error) (any, error) {
	given := reflect.New(t.params)
	if err := bind(given.Interface()); err != nil {
		return nil, err
	}
	s, err := a.Settings.Update(c, c.actor, func(s *setting.Settings) {
		for i, row := range s.List() {
			if value := given.Elem().Field(i); !value.IsNil() {
				row.Set(value.Elem().Interface())
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return t.of(&s), nil
}

// of returns the settings as a value of the result type.
func (t settingTypes) of(s *setting.Settings) any {
	v := reflect.New(t.result).Elem()
	v.Field(0).SetInt(1)
	for i, row := range s.List() {
		v.Field(i + 1).Set(reflect.ValueOf(row.Value).Elem())
	}
	return v.Interface()
}
