package alert

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"svc/internal/errs"
)

// Maximum lengths of the fields of an alert, in characters. Longer values are
// truncated; the payload has the whole value.
const (
	maxTitle       = 200
	maxDescription = 1000
	maxService     = 100
	maxTool        = 100
	maxHosts       = 255
	maxEnvironment = 255
)

const defaultTitle = "New: Alert"

// incoming is an alert in a payload.
type incoming struct {
	Alert
	resolved bool
	explicit bool // the payload has a fingerprint
}

// reader parses the payloads of an integration.
type reader struct {
	name     string // of the service
	mappings []Mapping
	now      time.Time
}

// read parses the alerts of a payload. The format is Metrics if the caller requires
// it or the payload has all members of that format. Invalid.
func (r reader) read(body []byte, metrics bool) ([]incoming, error) {
	doc, err := decode(body)
	if err != nil {
		return nil, err
	}
	if metrics || missing(doc) == "" {
		return r.metrics(doc)
	}
	in, err := r.generic(doc, body)
	return []incoming{in}, err
}

// generic parses a JSON object: fields are at the paths of the mappings, or else at
// the top level under their own names.
func (r reader) generic(doc map[string]any, body []byte) (incoming, error) {
	in := incoming{Alert: Alert{
		Format: Generic, Status: Triggered, Events: 1, StartedAt: r.now,
		Title:       clip(line(scalar(r.value(doc, TitleField))), maxTitle),
		Description: clip(scalar(r.value(doc, DescriptionField)), maxDescription),
		Service:     clip(line(scalar(r.value(doc, ServiceField))), maxService),
		Tool:        clip(line(scalar(r.value(doc, ToolField))), maxTool),
		Environment: clip(line(scalar(r.value(doc, EnvironmentField))), maxEnvironment),
		Hosts:       clipAll(scalars(r.value(doc, HostsField)), maxHosts),
	}}
	if in.Title == "" {
		in.Title = defaultTitle
	}
	in.Severity, _ = ParseSeverity(scalar(r.value(doc, SeverityField))) // critical if it is unknown
	if at, ok := moment(r.value(doc, StartField)); ok {
		in.StartedAt = at
	}
	if at, ok := moment(r.value(doc, EndField)); ok {
		in.end(at)
	}
	if print := scalars(r.value(doc, FingerprintField)); len(print) > 0 {
		in.explicit, in.Fingerprint = true, explicitPrint(print)
	} else {
		for _, f := range []Field{StartField, EndField, HostsField} {
			for _, p := range r.paths(f) {
				p.remove(doc)
			}
		}
		in.Fingerprint = digest("payload", encode(doc))
	}
	var text bytes.Buffer
	if err := json.Compact(&text, bytes.TrimPrefix(body, []byte("\ufeff"))); err != nil {
		return in, errs.Invalid("the payload is not valid JSON").Because(err)
	}
	in.Payload = text.String()
	return in, nil
}

// paths returns the paths where a field can be.
func (r reader) paths(f Field) []Path {
	var list []Path
	for _, m := range r.mappings {
		if m.Field == f {
			list = append(list, m.Paths...)
		}
	}
	list = append(list, Path{f.Name(r.name)})
	if f == EnvironmentField {
		list = append(list, Path{f.Name("gitlab")})
	}
	return list
}

// value returns the first valid value for a field.
func (r reader) value(doc map[string]any, f Field) any {
	for _, p := range r.paths(f) {
		if v := p.find(doc); v != nil && f.suits(v) {
			return v
		}
	}
	return nil
}

// end resolves the alert. If it has no start time, it starts at its end time at the
// latest.
func (in *incoming) end(at time.Time) {
	in.resolved, in.Status, in.EndedAt = true, Resolved, &at
	if in.StartedAt.After(at) {
		in.StartedAt = at
	}
}

// required are the top-level members of a payload in the format Metrics.
var required = []string{"alerts", "commonAnnotations", "commonLabels", "externalURL", "groupKey", "groupLabels", "receiver", "status", "version"}

// missing returns the names of required members that are missing.
func missing(doc map[string]any) string {
	var names []string
	for _, name := range required {
		if _, ok := doc[name]; !ok {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// metrics parses a payload in the format Metrics: an alert for each element. Those
// without a title or a start time are skipped.
func (r reader) metrics(doc map[string]any) ([]incoming, error) {
	if names := missing(doc); names != "" {
		return nil, errs.Invalid("the payload lacks: %s", names)
	}
	elements, ok := doc["alerts"].([]any)
	if !ok {
		return nil, errs.Invalid("alerts must be a list")
	}
	var list []incoming
	for _, element := range elements {
		if one, ok := element.(map[string]any); ok {
			if in, ok := r.element(one, scalar(doc["status"])); ok {
				list = append(list, in)
			}
		}
	}
	if len(list) == 0 {
		return nil, errs.Invalid("no alert of the payload has a title and startsAt")
	}
	return list, nil
}

// element parses an alert of such a payload; status is the status of the payload.
func (r reader) element(doc map[string]any, status string) (incoming, bool) {
	labels := Path{"labels"}.object(doc)
	started, ok := moment(doc["startsAt"])
	title := metricTitle(doc)
	if !ok || title == "" {
		return incoming{}, false
	}
	in := incoming{Alert: Alert{
		Format: Metrics, Status: Triggered, Events: 1, StartedAt: started, Tool: "Prometheus", Hosts: []string{},
		Title:       clip(title, maxTitle),
		Description: clip(scalar(Path{"annotations", "description"}.find(doc)), maxDescription),
		Severity:    synonym(scalar(labels["severity"])),
		Payload:     encode(doc),
	}}
	for _, service := range []string{r.name, "gitlab"} {
		if in.Environment == "" {
			in.Environment = clip(line(scalar(labels[service+"_environment_name"])), maxEnvironment)
		}
	}
	if own := scalar(doc["status"]); own != "" {
		status = own
	}
	ended, over := moment(doc["endsAt"])
	switch {
	case strings.EqualFold(status, "resolved"):
		if !over {
			ended = r.now
		}
		in.end(ended)
	case over && (!strings.EqualFold(status, "firing") || !ended.After(r.now)):
		// endsAt of a firing alert is when it expires unless it is sent again.
		in.end(ended)
	}
	if print := scalars(doc["fingerprint"]); len(print) > 0 {
		in.explicit, in.Fingerprint = true, explicitPrint(print)
	} else {
		in.Fingerprint = digest("metrics", encode([]any{title, labels, query(doc)}))
	}
	return in, true
}

// object returns the object at a path; nil for none.
func (p Path) object(doc map[string]any) map[string]any {
	found, _ := p.find(doc).(map[string]any)
	return found
}

// metricTitle returns the first value that can be a title.
func metricTitle(doc map[string]any) string {
	for _, p := range []Path{{"annotations", "title"}, {"annotations", "summary"}, {"labels", "alertname"}} {
		if text := line(scalar(p.find(doc))); text != "" {
			return text
		}
	}
	return ""
}

// synonyms are the names of severities in monitoring tools.
var synonyms = [][]string{
	Critical: {"critical", "s1", "p1", "emergency", "fatal"},
	High:     {"high", "s2", "p2", "major", "page"},
	Medium:   {"medium", "s3", "p3", "error", "alert"},
	Low:      {"low", "s4", "p4", "warn", "warning"},
	Info:     {"info", "s5", "p5", "debug", "information", "notice"},
}

// synonym returns the severity for a name; critical for unknown names.
func synonym(word string) Severity {
	for severity, words := range synonyms {
		for _, known := range words {
			if strings.EqualFold(known, word) {
				return Severity(severity)
			}
		}
	}
	return Critical
}

// explicitPrint returns the fingerprint for the one in a payload.
func explicitPrint(texts []string) string {
	if len(texts) == 1 {
		return digest("explicit", texts[0])
	}
	return digest("explicit", encode(texts))
}

// digest returns the fingerprint of a text. Those of different kinds never
// collide.
func digest(kind, text string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + text))
	return hex.EncodeToString(sum[:20])
}
