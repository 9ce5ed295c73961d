package transfer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/repo/pushrule"
)

// named returns the fields of a struct by their names in the API: access levels of
// features end with _access_level, all others are in snake case. A struct in it is
// named itself.
func named(v any) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	s := reflect.ValueOf(v).Elem()
	for i := range s.NumField() {
		name := snake(s.Type().Field(i).Name)
		if s.Field(i).Type() == reflect.TypeFor[project.Feature]() {
			name += "_access_level"
		}
		fields[name] = s.Field(i)
	}
	return fields
}

// snake returns the name of a field in snake case: CIConfigPath is ci_config_path.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		upper := unicode.IsUpper(r)
		if upper && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// encodeNamed returns a struct as JSON with the names of the API.
func encodeNamed(v any) (json.RawMessage, error) {
	out := map[string]any{}
	for name, f := range named(v) {
		if f.Kind() == reflect.Struct {
			nested, err := encodeNamed(f.Addr().Interface())
			if err != nil {
				return nil, err
			}
			out[name] = nested
			continue
		}
		out[name] = f.Interface()
	}
	return json.Marshal(out)
}

// decodeNamed sets the fields of a struct that JSON with the names of the API has.
// Invalid for other names and values.
func decodeNamed(text json.RawMessage, v any) error {
	if len(text) == 0 {
		return nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(text, &given); err != nil {
		return errs.Invalid("settings are not a JSON object").Because(err)
	}
	fields := named(v)
	for name, value := range given {
		f, ok := fields[name]
		if !ok {
			return errs.Invalid("the setting %.50q is not known", name)
		}
		if f.Kind() == reflect.Struct {
			if err := decodeNamed(value, f.Addr().Interface()); err != nil {
				return err
			}
			continue
		}
		if bytes.Equal(value, []byte("null")) || json.Unmarshal(value, f.Addr().Interface()) != nil {
			return errs.InvalidField(name, "is invalid")
		}
	}
	return nil
}

// features are the access levels of features that are columns of a project.
func features(p *project.Project) map[string]*project.Feature {
	return map[string]*project.Feature{
		"issues_access_level": &p.Issues, "repository_access_level": &p.Repository, "merge_requests_access_level": &p.MergeRequests, "builds_access_level": &p.Builds,
	}
}

// encodeSettings returns the settings of a project by their names in the API.
func encodeSettings(p *project.Project) (json.RawMessage, error) {
	text, err := encodeNamed(&p.Settings)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	for name, f := range features(p) {
		all[name] = json.RawMessage(strconv.Quote(string(*f)))
	}
	return json.Marshal(all)
}

// retiredSettings are settings without an effect that older export files have.
var retiredSettings = []string{
	"auto_devops_enabled", "ci_allow_fork_pipelines_to_run_in_parent_project", "merge_pipelines_enabled", "merge_trains_enabled", "service_desk_enabled",
}

// decodeSettings sets the settings of a project. Invalid.
func decodeSettings(text json.RawMessage, p *project.Project) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); len(text) > 0 && err != nil {
		return errs.Invalid("settings are not a JSON object").Because(err)
	}
	for name, f := range features(p) {
		if value, ok := all[name]; ok {
			if json.Unmarshal(value, f) != nil {
				return errs.InvalidField(name, "is invalid")
			}
			delete(all, name)
		}
	}
	for _, name := range retiredSettings {
		delete(all, name)
	}
	rest, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return decodeNamed(rest, &p.Settings)
}

// Overrides are attributes of a project by their names in the API, instead of those in
// the file.
type Overrides map[string]string

// apply sets the attributes of a project. Invalid for unknown names and values.
func (o Overrides) apply(p *project.Project) error {
	wrong := errs.Fields{}
	settings, columns := named(&p.Settings), features(p)
	for name, value := range o {
		if f, ok := columns[name]; ok {
			*f = project.Feature(value)
			continue
		}
		switch name {
		case "description":
			p.Description = value
			continue
		case "visibility":
			p.Visibility = project.Visibility(value)
			continue
		}
		f, ok := settings[name]
		if !ok || f.Kind() == reflect.Struct {
			wrong.Set("override_params", "%s", fmt.Sprintf("%.50q cannot be overridden", name))
			continue
		}
		var err error
		switch f.Kind() {
		case reflect.Bool:
			var b bool
			b, err = strconv.ParseBool(value)
			f.SetBool(b)
		case reflect.Int64:
			var n int64
			n, err = strconv.ParseInt(value, 10, 64)
			f.SetInt(n)
		default:
			f.SetString(value)
		}
		if err != nil {
			wrong.Set("override_params", "%s", fmt.Sprintf("%.50q is invalid", name))
		}
	}
	return wrong.Err()
}

// encodeRules returns push rules by the names of the API; nil for none.
func encodeRules(r *pushrule.Rules) (json.RawMessage, error) {
	if r == nil {
		return nil, nil
	}
	return encodeNamed(r)
}

// decodeRules returns the push rules of a file; nil for none. Invalid.
func decodeRules(text json.RawMessage) (*pushrule.Rules, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	r := &pushrule.Rules{}
	return r, decodeNamed(text, r)
}
