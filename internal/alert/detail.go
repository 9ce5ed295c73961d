package alert

import (
	"net/url"
	"strings"
)

// Details are the values of an alert's payload besides its fields.
type Details struct {
	Query       string // of the metric
	YLabel      string // of its axis
	Runbook     string // URL or text of the instructions
	Generator   string // the page of the metrics system, if it is a link
	Markdown    string // added to the description of an incident
	Annotations []Leaf // all others
	Facts       []Leaf // the whole payload
}

// Details parses the payload of an alert; service is the name of the service. An
// empty payload has no details.
func (a *Alert) Details(service string) Details {
	doc, err := decode([]byte(a.Payload))
	if err != nil {
		return Details{}
	}
	var d Details
	d.Facts, _ = Leaves(a.Payload) // it was parsed above
	if a.Format != Metrics {
		return d
	}
	d.Query, d.Generator = query(doc), generator(doc)
	if !strings.HasPrefix(d.Generator, "http://") && !strings.HasPrefix(d.Generator, "https://") {
		d.Generator = ""
	}
	annotations := Path{"annotations"}.object(doc)
	known := map[string]bool{"title": true, "description": true, "runbook": true}
	known["summary"] = scalar(annotations["title"]) == "" // it is the title
	d.Runbook = scalar(annotations["runbook"])
	for _, name := range []string{service, "gitlab"} {
		known[name+"_incident_markdown"], known[name+"_y_label"] = true, true
		if d.Markdown == "" {
			d.Markdown = scalar(annotations[name+"_incident_markdown"])
		}
		if d.YLabel == "" {
			d.YLabel = scalar(annotations[name+"_y_label"])
		}
	}
	if d.YLabel == "" {
		d.YLabel = metricTitle(doc)
	}
	for _, key := range sortedKeys(annotations) {
		if text := scalar(annotations[key]); text != "" && !known[key] {
			d.Annotations = append(d.Annotations, Leaf{Path{key}, text})
		}
	}
	return d
}

// generator returns the URL of the metrics system for the alert.
func generator(doc map[string]any) string {
	for _, name := range []string{"generatorURL", "generatorUrl"} {
		if text := scalar(doc[name]); text != "" {
			return text
		}
	}
	return ""
}

// query returns the expression that the metrics system evaluated; empty for none.
func query(doc map[string]any) string {
	u, err := url.Parse(generator(doc))
	if err != nil {
		return ""
	}
	return scalar(u.Query().Get("g0.expr"))
}
