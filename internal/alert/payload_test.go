package alert

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"svc/internal/errs"
)

var noon = time.Date(2024, 5, 6, 12, 0, 0, 0, time.UTC)

func read(t *testing.T, body string, metrics bool, mappings ...Mapping) []incoming {
	t.Helper()
	list, err := reader{name: "svc", mappings: mappings, now: noon}.read([]byte(body), metrics)
	if err != nil {
		t.Fatalf("read %s: %v", body, err)
	}
	return list
}

func TestGenericFields(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 2000)
	tests := []struct {
		name, body string
		want       string // fmt of severity, status, title, description, service, tool, environment, hosts
	}{
		{"nothing", `{}`, `critical triggered "New: Alert" "" "" "" "" []`},
		{"blank", `{"title":" ","severity":""}`, `critical triggered "New: Alert" "" "" "" "" []`},
		{"numbers", `{"title":7,"service":true,"hosts":[1,"b",null,{}]}`, `critical triggered "7" "" "true" "" "" [1 b]`},
		{"of wrong types", `{"title":{"a":1},"hosts":{"a":1},"severity":["high"],"description":null}`, `critical triggered "New: Alert" "" "" "" "" []`},
		{"severity", `{"severity":"UnKnown"}`, `unknown triggered "New: Alert" "" "" "" "" []`},
		{"no synonyms", `{"severity":"s3"}`, `critical triggered "New: Alert" "" "" "" "" []`},
		{"environment", `{"gitlab_environment_name":"a"}`, `critical triggered "New: Alert" "" "" "" "a" []`},
		{"its own name first", `{"gitlab_environment_name":"a","svc_environment_name":"b"}`, `critical triggered "New: Alert" "" "" "" "b" []`},
		{"lines", `{"title":"a\nb\u0000c","description":"a\nb\u0000c"}`, `critical triggered "a bc" "a\nbc" "" "" "" []`},
		{"one host", `{"hosts":"a"}`, `critical triggered "New: Alert" "" "" "" "" [a]`},
		{"lengths", fmt.Sprintf(`{"title":%[1]q,"description":%[1]q,"service":%[1]q,"monitoring_tool":%[1]q,"hosts":["%s","%s"]}`, long, strings.Repeat("h", 200), strings.Repeat("i", 56)),
			fmt.Sprintf(`critical triggered "%s..." "%s..." "%s..." "%[3]s..." "" [%s]`, strings.Repeat("ä", 197), strings.Repeat("ä", 997), strings.Repeat("ä", 97), strings.Repeat("h", 200))},
		{"over", `{"end_time":"2024-05-06T11:00:00+02:00"}`, `critical resolved "New: Alert" "" "" "" "" []`},
		{"over in the year 1", `{"end_time":"0001-01-01T00:00:00Z"}`, `critical triggered "New: Alert" "" "" "" "" []`},
		{"over some day", `{"end_time":"some day"}`, `critical triggered "New: Alert" "" "" "" "" []`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := read(t, tt.body, false)[0]
			got := fmt.Sprintf("%s %s %q %q %q %q %q %v", a.Severity, a.Status, a.Title, a.Description, a.Service, a.Tool, a.Environment, a.Hosts)
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestMoments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"2024-05-06T07:08:09Z"`: "2024-05-06T07:08:09Z", `"2024-05-06T07:08:09.123456789+02:00"`: "2024-05-06T05:08:09.123456Z", `"2024-05-06 07:08:09"`: "2024-05-06T07:08:09Z",
		`"2024-05-06 07:08:09 UTC"`: "2024-05-06T07:08:09Z", `"2024-05-06"`: "2024-05-06T00:00:00Z", `1714979289`: "2024-05-06T07:08:09Z", `"1714979289000"`: "2024-05-06T07:08:09Z",
		`"0001-01-01T00:00:00Z"`: "", `7`: "", `"x"`: "", `null`: "", `{}`: "", `99999999999999999`: "", `"9999-12-31T23:59:59-23:59"`: "",
	} {
		var v any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		at, ok := moment(v)
		if got := at.Format(time.RFC3339Nano); ok != (want != "") || ok && got != want {
			t.Errorf("%s: got %s, %v, want %q", text, got, ok, want)
		}
	}
}

// batch is a payload of metrics.
func batch(status string, elements ...string) string {
	return `{"version":"4","groupKey":"g","status":"` + status + `","receiver":"r","groupLabels":{},"commonLabels":{},"commonAnnotations":{},"externalURL":"x","alerts":[` + strings.Join(elements, ",") + `]}`
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ status, element, want string }{
		"title":               {"firing", `"annotations":{"title":"t","summary":"s"},"labels":{"alertname":"a"}`, "critical triggered t"},
		"summary":             {"firing", `"annotations":{"title":"","summary":"s"},"labels":{"alertname":"a"}`, "critical triggered s"},
		"name":                {"firing", `"labels":{"alertname":"a","severity":"PAGE"}`, "high triggered a"},
		"an unknown severity": {"firing", `"labels":{"alertname":"a","severity":"purple"}`, "critical triggered a"},
		"resolved":            {"firing", `"labels":{"alertname":"a"},"status":"Resolved"`, "critical resolved a"},
		"all resolved":        {"resolved", `"labels":{"alertname":"a"}`, "critical resolved a"},
		"some resolved":       {"resolved", `"labels":{"alertname":"a"},"status":"firing"`, "critical triggered a"},
		"ended":               {"", `"labels":{"alertname":"a"},"endsAt":"2025-01-01T00:00:00Z"`, "critical resolved a"},
		"ended while firing":  {"firing", `"labels":{"alertname":"a"},"endsAt":"2024-05-06T11:00:00Z"`, "critical resolved a"},
		"fires until later":   {"firing", `"labels":{"alertname":"a"},"endsAt":"2024-05-06T13:00:00Z"`, "critical triggered a"},
		"never ended":         {"firing", `"labels":{"alertname":"a"},"endsAt":"0001-01-01T00:00:00Z"`, "critical triggered a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := read(t, batch(tt.status, `{"startsAt":"2024-05-06T10:00:00Z",`+tt.element+`}`), false)[0]
			if got := fmt.Sprintf("%s %s %s", a.Severity, a.Status, a.Title); got != tt.want || a.Format != Metrics {
				t.Errorf("got %s in the format %s, want %s", got, a.Format, tt.want)
			}
		})
	}
}

func TestSynonyms(t *testing.T) {
	t.Parallel()
	for want, words := range map[Severity]string{
		Critical: "critical S1 p1 Emergency fatal unknown x", High: "high s2 P2 major page", Medium: "medium s3 p3 ERROR alert", Low: "low s4 p4 warn warning",
		Info: "info s5 p5 debug information Notice",
	} {
		for word := range strings.FieldsSeq(words) {
			if got := synonym(word); got != want {
				t.Errorf("%s is %s, want %s", word, got, want)
			}
		}
	}
}

func TestRefusedMetrics(t *testing.T) {
	t.Parallel()
	good := batch("firing", `{"startsAt":"2024-05-06T10:00:00Z","labels":{"alertname":"a"}}`)
	read(t, good, true)
	for _, name := range required {
		var doc map[string]any
		if err := json.Unmarshal([]byte(good), &doc); err != nil {
			t.Fatal(err)
		}
		delete(doc, name)
		_, err := reader{name: "svc", now: noon}.read([]byte(encode(doc)), true)
		if !errs.Is(err, errs.KindInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	for _, bad := range []string{batch("firing"), batch("firing", `{"startsAt":"2024-05-06T10:00:00Z"}`, `{"labels":{"alertname":"a"}}`, `7`), strings.Replace(good, `"alerts":[`, `"alerts":7,"x":[`, 1), `[]`, `{`, ``, `null`} {
		if _, err := (reader{name: "svc", now: noon}).read([]byte(bad), true); !errs.Is(err, errs.KindInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestFingerprints checks which payloads belong to the same alert.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	hosts := Mapping{HostsField, []Path{{"at", "0"}}}
	metric := func(text string) string { return batch("firing", `{"startsAt":"2024-05-06T10:00:00Z",`+text+`}`) }
	for _, tt := range []struct {
		one, other string
		same       bool
	}{
		{`{"a":1,"b":{"c":1,"d":2}}`, ` { "b":{"d":2,"c":1},"a":1}`, true},
		{`{"a":1}`, `{"a":2}`, false},
		{`{"a":1}`, `{"a":1.0}`, false},
		{`{"a":1,"start_time":"x","end_time":"y","hosts":["a"]}`, `{"a":1}`, true},
		{`{"a":1,"severity":"high"}`, `{"a":1,"severity":"low"}`, false},
		{`{"a":1,"fingerprint":"x"}`, `{"a":2,"fingerprint":["x"]}`, true},
		{`{"fingerprint":["x","y"]}`, `{"fingerprint":["xy"]}`, false},
		{`{"fingerprint":""}`, `{}`, false},
		{`{"a":1,"at":["h",2]}`, `{"a":1,"at":["i",2]}`, true},
		{`{"a":1,"at":["h",2]}`, `{"a":1,"at":["h",3]}`, false},
		{metric(`"labels":{"alertname":"a","x":"1"},"annotations":{"value":"1"}`), metric(`"labels":{"alertname":"a","x":"1"},"annotations":{"value":"2"},"status":"resolved"`), true},
		{metric(`"labels":{"alertname":"a","x":"1"}`), metric(`"labels":{"alertname":"a","x":"2"}`), false},
		{metric(`"labels":{"alertname":"a"},"fingerprint":"f"`), metric(`"labels":{"alertname":"b"},"fingerprint":"f"`), true},
		{metric(`"labels":{"alertname":"a"},"generatorURL":"http://x?g0.expr=1"`), metric(`"labels":{"alertname":"a"},"generatorUrl":"http://x?g0.expr=2"`), false},
	} {
		one, other := read(t, tt.one, false, hosts)[0].Fingerprint, read(t, tt.other, false, hosts)[0].Fingerprint
		if (one == other) != tt.same {
			t.Errorf("%s and %s: the same is %v", tt.one, tt.other, one == other)
		}
	}
}

func TestSlugs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"My Watch": "my-watch", "ä": "http-endpoint", "--a--b--": "a-b", "A/B.json": "a-b-json", strings.Repeat("x", 300): strings.Repeat("x", 63)} {
		if got := slug(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// FuzzPayload holds what becomes of payloads to what a row can store.
func FuzzPayload(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"title":"a","hosts":["a",1],"fingerprint":["x"],"end_time":"2024-01-01","svc_environment_name":"p","a":{"b":[{"c":"d"}]}}`,
		batch("firing", `{"startsAt":"2024-05-06T10:00:00Z","labels":{"alertname":"a","severity":"s3"},"annotations":{"title":"t","runbook":"r","x":"y"},"generatorURL":"http://x?g0.expr=up","endsAt":"0001-01-01T00:00:00Z"}`, `{}`, `7`),
		`{"title":"\ud800\u0000"}`, `{"a":1e999}`, "\ufeff{}", `{"a":"b","a":"c"}`, `[[[[`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	mappings := []Mapping{{TitleField, []Path{{"a", "b", "0", "c"}, {"a"}}}, {HostsField, []Path{{"a", "b"}}}, {StartField, []Path{{"t"}}}, {FingerprintField, []Path{{"f", "0"}}}}
	f.Fuzz(func(t *testing.T, body []byte, metrics bool) {
		r := reader{name: "svc", mappings: mappings, now: noon}
		list, err := r.read(body, metrics)
		if err != nil {
			if !errs.Is(err, errs.KindInvalid) {
				t.Fatal(err)
			}
			return
		}
		again, err := r.read(body, metrics)
		if err != nil || len(again) != len(list) || len(list) == 0 {
			t.Fatalf("read twice: %d and %d alerts, %v", len(list), len(again), err)
		}
		for i, a := range list {
			if a.Fingerprint != again[i].Fingerprint || len(a.Fingerprint) != 40 {
				t.Errorf("fingerprints %q and %q", a.Fingerprint, again[i].Fingerprint)
			}
			for text, most := range map[string]int{a.Title: maxTitle, a.Description: maxDescription, a.Service: maxService, a.Tool: maxTool, a.Environment: maxEnvironment, strings.Join(a.Hosts, ""): maxHosts} {
				if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || utf8.RuneCountInString(text) > most {
					t.Errorf("a field is %q", text)
				}
			}
			if a.Title == "" || a.resolved != (a.EndedAt != nil) || a.resolved != (a.Status == Resolved) {
				t.Errorf("title %q, ended %v, status %s", a.Title, a.EndedAt, a.Status)
			}
			if !json.Valid([]byte(a.Payload)) || !utf8.ValidString(a.Payload) || strings.ContainsRune(a.Payload, 0) {
				t.Errorf("payload %q", a.Payload)
			}
			for _, at := range []*time.Time{&a.StartedAt, a.EndedAt} {
				if at != nil && !time.UnixMicro(at.UnixMicro()).Equal(*at) {
					t.Errorf("the time %v can not be stored", at)
				}
			}
			d := a.Details("svc")
			if a.Format == Metrics && d.YLabel == "" {
				t.Error("no label of the axis")
			}
		}
	})
}

// FuzzMappings reads arbitrary mappings, and finds with them what is there.
func FuzzMappings(f *testing.F) {
	for _, seed := range []string{
		`[{"field_name":"title","path":["a",0],"fallback_paths":[["b"]]}]`, `{"hosts":{"path":["a"]},"gitlab_environment_name":{"path":"b"}}`, `[]`, `{}`, `null`,
		`[{"field_name":"title","path":[]}]`, `[{"field_name":"end_time","path":[1e300,-1,"-0"]}]`,
	} {
		f.Add([]byte(seed), []byte(`{"a":["x",{"b":1}],"b":"2024-01-01"}`))
	}
	f.Fuzz(func(t *testing.T, text, sample []byte) {
		list, err := ParseMappings(text, "svc")
		if err != nil {
			if !errs.Is(err, errs.KindInvalid) {
				t.Fatal(err)
			}
			return
		}
		again, err := ParseMappings([]byte(WriteMappings(list, "svc")), "svc")
		if err != nil || fmt.Sprint(again) != fmt.Sprint(list) {
			t.Fatalf("%v was written and read as %v, %v", list, again, err)
		}
		if err := checkMappings(list, string(sample)); err != nil {
			if !errs.Is(err, errs.KindInvalid) {
				t.Fatal(err)
			}
			return
		}
		if len(list) == 0 {
			return
		}
		doc, err := decode(sample)
		if err != nil {
			t.Fatal(err)
		}
		r := reader{name: "svc", mappings: list, now: noon}
		for _, m := range list {
			if r.value(doc, m.Field) == nil {
				t.Errorf("%s is in the sample and was not found", m.Field)
			}
		}
		if _, err := Leaves(string(sample)); err != nil {
			t.Error(err)
		}
		for _, m := range list {
			for _, p := range m.Paths {
				p.remove(doc)
				if v := p.find(doc); v != nil {
					t.Errorf("%v was removed and is %v", p, v)
				}
			}
		}
	})
}
