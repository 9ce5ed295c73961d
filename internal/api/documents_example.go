package api

import (
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"svc/internal/bind"
)

// examples makes sample requests and answers.
type examples struct {
	schemas *schemas
	site    *Site
}

// results are the answers of success, one for each shape that the result may
// have.
func (x *examples) results(e *endpoint) []docsResult {
	switch e.result {
	case reflect.TypeFor[none]():
		return []docsResult{{Status: http.StatusNoContent, Text: "No content"}}
	case reflect.TypeFor[accepted]():
		return []docsResult{{Status: http.StatusAccepted, Text: "Goes on in the background", JSON: pretty(acceptedJSON{"202 Accepted"})}}
	case reflect.TypeFor[streamed]():
		return []docsResult{{Status: e.status, Text: "The content"}}
	}
	result, list := x.schemas.result(e)
	shapes, outer := []*schema{result}, ""
	if list {
		shapes, outer = []*schema{result.Items}, "list of "
	}
	if shapes[0].AnyOf != nil {
		shapes = shapes[0].AnyOf
	}
	var results []docsResult
	for _, one := range shapes {
		r := docsResult{Status: e.status}
		names, _ := types(one)
		r.Shape = names[0]
		r.Shape.Text = outer + r.Shape.Text
		if list {
			one = arrayOf(one)
		}
		r.JSON = x.text(one)
		results = append(results, r)
	}
	return results
}

// Text is an example of a schema.
func (x *examples) text(s *schema) string { return pretty(x.value("", s, nil)) }

// value gives a value that the schema allows. within are the components it
// stands inside of: one that leads back to itself ends there.
func (x *examples) value(name string, s *schema, within []string) any {
	switch {
	case s.Ref != "":
		component := refName(s)
		for _, outer := range within {
			if outer == component {
				return members{}
			}
		}
		return x.value(name, x.schemas.named[component], append(within, component))
	case s.AnyOf != nil:
		return x.value(name, s.AnyOf[0], within)
	case s.Default != nil:
		return s.Default
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type == nil:
		return nil
	}
	switch s.Type[0] {
	case "object":
		o := members{}
		for _, m := range s.Properties {
			o = append(o, member{m.name, x.value(m.name, m.value.(*schema), within)})
		}
		if inner, ok := s.AdditionalProperties.(*schema); ok {
			o = append(o, member{"key", x.value("value", inner, within)})
		}
		return o
	case "array":
		return []any{x.value(strings.TrimSuffix(name, "s"), s.Items, within)}
	case "boolean":
		return strings.HasPrefix(name, "can_") || strings.HasSuffix(name, "enabled") || name == "active" || name == ""
	case "integer":
		return sampleNumber(name)
	case "number":
		return 12.5
	}
	return x.sampleText(name, s.Format)
}

func sampleNumber(name string) int {
	switch {
	case name == "id", strings.HasSuffix(name, "_id"):
		return 42
	case strings.Contains(name, "limit"), strings.Contains(name, "max"):
		return 100
	}
	return 1
}

// sampleText gives a text that looks like what the field of a name holds.
func (x *examples) sampleText(name, format string) string {
	switch format {
	case "date-time":
		return "2026-03-14T09:26:53.000Z"
	case "date":
		return "2026-03-14"
	case "binary":
		return "file"
	}
	for _, sample := range samples {
		if name == sample.name || strings.HasPrefix(sample.name, "_") && strings.HasSuffix(name, sample.name) {
			return strings.NewReplacer("{url}", x.site.URL, "{version}", x.site.Version, "{name}", x.site.Name).Replace(sample.text)
		}
	}
	return "text"
}

// samples by the names of fields; one that begins with _ is for all that end
// so. The first that fits is taken.
var samples = []struct{ name, text string }{
	{"username", "ada"},
	{"name", "Ada Lovelace"},
	{"author_name", "Ada Lovelace"},
	{"email", "ada@example.com"},
	{"_email", "ada@example.com"},
	{"web_url", "{url}/ada"},
	{"avatar_url", "{url}/uploads/-/system/user/avatar/42/avatar.png"},
	{"website_url", "https://ada.example.com"},
	{"_url", "{url}"},
	{"state", "active"},
	{"password", "correct horse battery staple"},
	{"key", "DEPLOY_ENV"},
	{"value", "production"},
	{"variable_type", "env_var"},
	{"token", "{name}pat-••••••••••••••••••••"},
	{"scope", "read_api"},
	{"version", "{version}"},
	{"revision", "0a1b2c3d4e5"},
	{"location", "London"},
	{"_ip", "203.0.113.7"},
	{"ip_address", "203.0.113.7"},
	{"local_time", "9:26 AM"},
	{"message", "Success"},
	{"title", "A title"},
	{"description", "What it is for"},
	{"note", "A note"},
	{"bio", "Wrote the first program."},
	{"organization", "Analytical Engines"},
	{"job_title", "Mathematician"},
	{"work_information", "Mathematician at Analytical Engines"},
	{"pronouns", "she/her"},
	{"plan", "ultimate"},
	{"provider", "ldapmain"},
	{"extern_uid", "uid=ada"},
	{"entity_type", "User"},
	{"target_type", "User"},
	{"author_class", "User"},
	{"entity_path", "ada"},
	{"target_details", "ada"},
	{"event_type", "user_created"},
}

// curl is a request for the shell: with what must be sent, and no more.
func (x *examples) curl(op *operation) string {
	e := op.endpoint
	path, query := e.path, url.Values{}
	for _, p := range op.Parameters {
		switch value := x.word(p); {
		case p.In == "path":
			path = strings.Replace(path, "{"+p.Name+"}", url.PathEscape(value), 1)
		case p.Required:
			query.Set(p.Name, value)
		}
	}
	lines := []string{"curl"}
	if e.method != http.MethodGet {
		lines[0] += " --request " + e.method
	}
	if !e.access.nobody {
		lines[0] += ` --header "PRIVATE-TOKEN: $TOKEN"`
	}
	if op.Body != nil && op.Body.Content[0].name == "application/json" {
		if o := x.required(op); len(o) > 0 {
			lines = append(lines, `  --header "Content-Type: application/json"`, "  --data '"+strings.ReplaceAll(pretty(o), "'", `'\''`)+"'")
		}
	}
	address := x.site.URL + prefix + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	if len(lines) == 1 && len(lines[0])+len(address) < 60 {
		return lines[0] + ` "` + address + `"`
	}
	return strings.Join(append(lines, `  "`+address+`"`), " \\\n")
}

// Required are the members of a body that must be sent; of a group of which
// some must, the first.
func (x *examples) required(op *operation) members {
	s := x.schemas.named[refName(op.Body.Content[0].value.(media).Schema)]
	must := map[string]bool{}
	for _, name := range s.Required {
		must[name] = true
	}
	for _, r := range op.endpoint.layout.Rules {
		if r.Kind == bind.RuleAtLeastOne || r.Kind == bind.RuleExactlyOne {
			must[r.Names[0]] = true
		}
	}
	o := members{}
	for _, m := range s.Properties {
		if must[m.name] {
			o = append(o, member{m.name, x.value(m.name, m.value.(*schema), nil)})
		}
	}
	return o
}

// word is an example of a parameter in the path or the query.
func (x *examples) word(p parameter) string {
	switch v := x.value(strings.TrimSuffix(p.Name, "[]"), p.Schema, nil).(type) {
	case string:
		return v
	case []any:
		return strings.Trim(pretty(v[0]), `"`)
	default:
		return pretty(v)
	}
}
