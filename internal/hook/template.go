package hook

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// field matches a placeholder of a template.
var field = regexp.MustCompile(`\{\{\s*([A-Za-z0-9_.\-]+)\s*\}\}`)

// maxRendered is the size limit of a rendered body in bytes.
const maxRendered = 5 << 20

// renderTemplate replaces the fields of a template by values of the payload:
// {{object_attributes.id}}. The result must be JSON.
func renderTemplate(template string, payload []byte) ([]byte, error) {
	var values any
	if err := json.Unmarshal(payload, &values); err != nil {
		return nil, err
	}
	var out strings.Builder
	from, quoted := 0, false
	for _, m := range field.FindAllStringSubmatchIndex(template, -1) {
		before := template[from:m[0]]
		out.WriteString(before)
		quoted = insideString(quoted, before)
		out.WriteString(insertable(lookUp(values, template[m[2]:m[3]]), quoted))
		if from = m[1]; out.Len() > maxRendered {
			return nil, errors.New("the rendered template is too large")
		}
	}
	out.WriteString(template[from:])
	text := []byte(out.String())
	if !json.Valid(text) {
		return nil, errors.New("the rendered template is not valid JSON")
	}
	return text, nil
}

// insideString reports whether a JSON text ends inside a string. quoted reports whether
// it begins inside one.
func insideString(quoted bool, text string) bool {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == '\\' && quoted:
			i++
		}
	}
	return quoted
}

// lookUp finds a value by its path: names of objects and indexes of lists.
func lookUp(value any, path string) any {
	for _, name := range strings.Split(path, ".") {
		switch at := value.(type) {
		case map[string]any:
			value = at[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			value = at[i]
		default:
			return nil
		}
	}
	return value
}

// insertable returns a value as text for a JSON document. Inside a string, texts are
// inserted without quotes, other values as escaped JSON, and missing values as nothing.
func insertable(value any, quoted bool) string {
	text, ok := value.(string)
	if !ok || !quoted {
		encoded, err := json.Marshal(value)
		if err != nil || quoted && value == nil {
			return ""
		}
		if text = string(encoded); !quoted {
			return text
		}
	}
	encoded, _ := json.Marshal(text) // a string
	return string(encoded[1 : len(encoded)-1])
}
