package openapi

import (
	"net/http"
	"net/url"
	"strings"

	"svc/internal/bind"
)

// examples creates sample requests and responses.
type examples struct{ schemas *Schemas }

// results returns the successful responses, one for each type of the result.
func (x *examples) results(e *Endpoint) []docsResult {
	switch e.Result {
	case Empty:
		return []docsResult{{Status: http.StatusNoContent, Text: "No content"}}
	case Accepted:
		return []docsResult{{Status: http.StatusAccepted, Text: "Accepted", JSON: pretty(acceptedJSON{"202 Accepted"})}}
	case Stream:
		return []docsResult{{Status: e.Status, Text: "The content"}}
	}
	schemas := []*Schema{x.schemas.oneOf(e.Types)}
	if schemas[0].AnyOf != nil {
		schemas = schemas[0].AnyOf
	}
	var results []docsResult
	for _, one := range schemas {
		r := docsResult{Status: e.Status}
		if names, _ := types(one); len(names) > 0 {
			r.Shape = names[0]
		} else {
			r.Shape.Text = "null"
		}
		if e.Result == List {
			r.Shape.Text = "list of " + r.Shape.Text
			one = ArrayOf(one)
		}
		r.JSON = x.text(one)
		results = append(results, r)
	}
	return results
}

// text returns an example of a schema as JSON.
func (x *examples) text(s *Schema) string { return pretty(x.value("", s, nil)) }

// value returns a value that the schema allows. within are the enclosing
// components: recursion ends at the first repetition.
func (x *examples) value(name string, s *Schema, within []string) any {
	switch {
	case len(s.Type) == 1 && s.Type[0] == "null":
		return nil
	case s.Ref != "":
		component := refName(s)
		for _, outer := range within {
			if outer == component {
				return Object{}
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
		o := Object{}
		for _, m := range s.Properties {
			o = append(o, Member{m.Name, x.value(m.Name, m.Value.(*Schema), within)})
		}
		if inner, ok := s.AdditionalProperties.(*Schema); ok {
			o = append(o, Member{"key", x.value("value", inner, within)})
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

// sampleText returns a plausible value of a field with the name.
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
			return strings.NewReplacer("{url}", x.schemas.Server.URL, "{version}", x.schemas.Server.Version, "{name}", x.schemas.Server.Name).Replace(sample.text)
		}
	}
	return "text"
}

// samples are values by field name. A name that starts with _ is a suffix. The
// first match is used.
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

// curl returns a shell command for a request with the required parameters.
func (x *examples) curl(op *operation) string {
	e := op.endpoint
	path, query := e.Path, url.Values{}
	for _, p := range op.Parameters {
		switch value := x.word(p); {
		case p.In == "path":
			path = strings.Replace(path, "{"+p.Name+"}", url.PathEscape(value), 1)
		case p.Required:
			query.Set(p.Name, value)
		}
	}
	lines := []string{"curl"}
	if e.Method != http.MethodGet {
		lines[0] += " --request " + e.Method
	}
	if !e.Public {
		lines[0] += ` --header "PRIVATE-TOKEN: $TOKEN"`
	}
	if op.Body != nil && op.Body.Content[0].Name == "application/json" {
		if o := x.required(op); len(o) > 0 {
			lines = append(lines, `  --header "Content-Type: application/json"`, "  --data '"+strings.ReplaceAll(pretty(o), "'", `'\''`)+"'")
		}
	}
	address := x.schemas.Server.URL + x.schemas.Server.Prefix + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	if len(lines) == 1 && len(lines[0])+len(address) < 60 {
		return lines[0] + ` "` + address + `"`
	}
	return strings.Join(append(lines, `  "`+address+`"`), " \\\n")
}

// required returns the required members of a body, and the first parameter of
// each rule that requires one of several.
func (x *examples) required(op *operation) Object {
	s := x.schemas.named[refName(op.Body.Content[0].Value.(media).Schema)]
	must := map[string]bool{}
	for _, name := range s.Required {
		must[name] = true
	}
	for _, r := range op.endpoint.Params.Rules {
		if r.Kind == bind.RuleAtLeastOne || r.Kind == bind.RuleExactlyOne {
			must[r.Names[0]] = true
		}
	}
	o := Object{}
	for _, m := range s.Properties {
		if must[m.Name] {
			o = append(o, Member{m.Name, x.value(m.Name, m.Value.(*Schema), nil)})
		}
	}
	return o
}

// word returns an example of a path or query parameter.
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
