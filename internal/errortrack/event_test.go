package errortrack_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"svc/internal/errortrack"
	"svc/internal/errs"
)

var now = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

func parse(t testing.TB, text string) *errortrack.Event {
	t.Helper()
	e, err := errortrack.ParseEvent([]byte(text), now)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e
}

// TestParseEvent parses the different formats in which SDKs send the same fields.
func TestParseEvent(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"function":"f"},`, 200)
	for _, tt := range []struct {
		name, text string
		got        func(e *errortrack.Event) any
		want       any
	}{
		{"id", `{"event_id":"FC6D8C0C-43FC-4630-AD85-0EE518F1B9D0"}`, func(e *errortrack.Event) any { return e.ID }, "fc6d8c0c43fc4630ad850ee518f1b9d0"},
		{"no id", `{"event_id":"x"}`, func(e *errortrack.Event) any { return e.ID }, ""},
		{"time as a number", `{"timestamp":1773500000.5}`, func(e *errortrack.Event) any { return e.At.UnixMicro() }, int64(1773500000500000)},
		{"time as text", `{"timestamp":"2026-03-14T14:00:00.25Z"}`, func(e *errortrack.Event) any { return e.At }, time.Date(2026, 3, 14, 14, 0, 0, 250e6, time.UTC)},
		{"time without a zone", `{"timestamp":"2026-03-14T14:00:00"}`, func(e *errortrack.Event) any { return e.At }, time.Date(2026, 3, 14, 14, 0, 0, 0, time.UTC)},
		{"time to come", `{"timestamp":1773600000}`, func(e *errortrack.Event) any { return e.At }, now},
		{"time long past", `{"timestamp":1}`, func(e *errortrack.Event) any { return e.At }, now},
		{"time that is none", `{"timestamp":{}}`, func(e *errortrack.Event) any { return e.At }, now},
		{"environment", `{"environment":"staging"}`, func(e *errortrack.Event) any { return e.Environment }, "staging"},
		{"no environment", `{"environment":null}`, func(e *errortrack.Event) any { return e.Environment }, "production"},
		{"level", `{"level":"warn"}`, func(e *errortrack.Event) any { return e.Level }, "warning"},
		{"no level", `{"level":7}`, func(e *errortrack.Event) any { return e.Level }, "error"},
		{"tags as an object", `{"tags":{"b":2,"a":"x","c":null,"d":[1]}}`, func(e *errortrack.Event) any { return fmt.Sprint(e.Tags) }, "[{a x} {b 2}]"},
		{"tags as pairs", `{"tags":[["b","y"],["a","x"],"z",["1","2","3"]]}`, func(e *errortrack.Event) any { return fmt.Sprint(e.Tags) }, "[{b y} {a x}]"},
		{"message", `{"message":"hello"}`, func(e *errortrack.Event) any { return e.Title }, "hello"},
		{"message as an object", `{"message":{"message":"hello %s","formatted":"hello you"}}`, func(e *errortrack.Event) any { return e.Title }, "hello you"},
		{"entry of a log", `{"logentry":{"message":"hello"}}`, func(e *errortrack.Event) any { return e.Title }, "hello"},
		{"entry of an old log", `{"sentry.interfaces.Message":{"message":"hello"}}`, func(e *errortrack.Event) any { return e.Title }, "hello"},
		{"nothing", `{}`, func(e *errortrack.Event) any { return e.Title }, "(no message)"},
		{"exceptions", `{"exception":{"values":[{"type":"Inner","value":"a"},{"type":"Outer","value":"b"}]}}`, func(e *errortrack.Event) any { return e.Type() + e.Title + e.Exceptions[1].Type }, "OuterbInner"},
		{"exceptions in a list", `{"exception":[{"type":"A"},null,3]}`, func(e *errortrack.Event) any { return e.Type() + fmt.Sprint(len(e.Exceptions)) }, "A1"},
		{"one exception", `{"exception":{"type":"A","value":7}}`, func(e *errortrack.Event) any { return e.Type() + e.Title }, "A7"},
		{"no exception", `{"exception":"x","message":"m"}`, func(e *errortrack.Event) any { return fmt.Sprint(e.Exceptions, e.Title) }, "[]m"},
		{"frames turn round", `{"exception":{"type":"A","stacktrace":{"frames":[{"function":"outer"},{"function":"inner","lineno":"3"}]}}}`,
			func(e *errortrack.Event) any {
				f := e.Exceptions[0].Frames
				return fmt.Sprint(f[0].Function, f[0].Line, f[1].Function)
			}, "inner3outer"},
		{"a deep stack", `{"exception":{"type":"A","stacktrace":{"frames":[` + deep + `{}]}}}`, func(e *errortrack.Event) any {
			return fmt.Sprint(len(e.Exceptions[0].Frames), " ", e.Exceptions[0].Omitted)
		}, "60 141"},
		{"source", `{"exception":{"type":"A","stacktrace":{"frames":[{"pre_context":["1","2"],"context_line":"3","post_context":["4"]}]}}}`,
			func(e *errortrack.Event) any {
				f := e.Exceptions[0].Frames[0]
				return fmt.Sprint(f.Before, f.Source, f.After)
			}, "[1 2]3[4]"},
		{"stack of a message", `{"message":"m","threads":{"values":[{"id":1},{"current":true,"stacktrace":{"frames":[{"function":"f"}]}}]}}`,
			func(e *errortrack.Event) any { return e.Type() + e.Exceptions[0].Frames[0].Function }, "f"},
		{"user", `{"user":{"id":7,"email":"a@example.org","ip_address":"1.2.3.4"}}`, func(e *errortrack.Event) any { return e.User }, "a@example.org"},
		{"request without its secrets", `{"request":{"method":"GET","url":"https://u:p@example.org/a?token=x#y"}}`, func(e *errortrack.Event) any { return e.Request }, "GET https://example.org/a"},
		{"crumbs", `{"breadcrumbs":[{"category":"http","data":{"url":"/x","code":3}}]}`, func(e *errortrack.Event) any { return e.Crumbs[0].Message }, "code=3 url=/x"},
		{"contexts", `{"contexts":{"os":{"name":"Linux","kernel":{"x":1}},"trace":{"id":"1"},"b":3},"extra":{"k":true}}`, func(e *errortrack.Event) any { return fmt.Sprint(e.Contexts) }, "[{os [{name Linux}]} {extra [{k true}]}]"},
		{"zero bytes", `{"message":"a\u0000b","tags":{"\u0000k":"v\u0000"}}`, func(e *errortrack.Event) any { return e.Title + fmt.Sprint(e.Tags) }, "ab[{k v}]"},
		{"a long text", `{"message":"` + strings.Repeat("ä", 400) + `"}`, func(e *errortrack.Event) any { return len(e.Title) <= 500 && utf8.ValidString(e.Title) }, true},
	} {
		if got := tt.got(parse(t, tt.text)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	for _, text := range []string{``, `[]`, `"x"`, `{`, `{"a":}`} {
		if _, err := errortrack.ParseEvent([]byte(text), now); !errs.Is(err, errs.KindInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestGroup checks which events are grouped together.
func TestGroup(t *testing.T) {
	t.Parallel()
	const at = `{"platform":"go","exception":{"type":"%s","value":"%s","stacktrace":{"frames":[{"module":"lib","function":"%s","lineno":1},{"module":"main","function":"%s","lineno":%d,"in_app":%t}]}}}`
	event := func(kind, value, lib, own string, line int, inApp bool) string {
		return fmt.Sprintf(at, kind, value, lib, own, line, inApp)
	}
	for _, tt := range []struct {
		name, a, b string
		same       bool
	}{
		{"another text, line and library", event("E", "1", "a", "f", 3, true), event("E", "2", "b", "f", 4, true), true},
		{"another function", event("E", "1", "a", "f", 3, true), event("E", "1", "a", "g", 3, true), false},
		{"another type", event("E", "1", "a", "f", 3, true), event("F", "1", "a", "f", 3, true), false},
		{"another library where nothing is of the program", event("E", "1", "a", "f", 3, false), event("E", "1", "b", "f", 3, false), false},
		{"deeper recursion", `{"exception":{"type":"E","stacktrace":{"frames":[{"function":"f"}]}}}`, `{"exception":{"type":"E","stacktrace":{"frames":[{"function":"f"},{"function":"f"}]}}}`, true},
		{"no stack, the same place", `{"transaction":"/x","exception":{"type":"E","value":"a"}}`, `{"transaction":"/x","exception":{"type":"E","value":"b"}}`, true},
		{"no stack, another place", `{"transaction":"/x","exception":{"type":"E","value":"a"}}`, `{"transaction":"/y","exception":{"type":"E","value":"a"}}`, false},
		{"no stack and no place", `{"exception":{"type":"E","value":"a"}}`, `{"exception":{"type":"E","value":"b"}}`, false},
		{"messages with other numbers", `{"message":"job 17 of 0xff failed"}`, `{"message":"job 18 of 0xee failed"}`, true},
		{"messages with other words", `{"message":"job failed"}`, `{"message":"job stuck"}`, false},
		{"messages of one form", `{"logentry":{"message":"hello %s","formatted":"hello you"}}`, `{"logentry":{"message":"hello %s","formatted":"hello me"}}`, true},
		{"said to be alike", `{"fingerprint":["x"],"message":"a"}`, `{"fingerprint":["x"],"message":"b"}`, true},
		{"said to differ", `{"fingerprint":["x"],"message":"a"}`, `{"fingerprint":["y"],"message":"a"}`, false},
		{"as usual, said so", `{"fingerprint":["{{ default }}"],"message":"a"}`, `{"message":"a"}`, true},
		{"as usual and more", `{"fingerprint":["{{default}}","x"],"message":"a"}`, `{"fingerprint":["{{ default }}","x"],"message":"a"}`, true},
		{"as usual and other", `{"fingerprint":["{{ default }}","x"],"message":"a"}`, `{"fingerprint":["{{ default }}","x"],"message":"b"}`, false},
	} {
		if a, b := errortrack.Group(parse(t, tt.a)), errortrack.Group(parse(t, tt.b)); (a == b) != tt.same {
			t.Errorf("%s: alike is %t", tt.name, a == b)
		}
	}
}

// TestDetails checks that the stored details of the largest event have a limited
// size and contain the location of the error.
func TestDetails(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 400)
	frame := `{"function":"f","filename":"` + line + `","context_line":"` + line + `","pre_context":["` + strings.Repeat(line+`","`, 9) + `"]},`
	one := `{"type":"E","value":"` + strings.Repeat(line, 9) + `","stacktrace":{"frames":[` + strings.Repeat(frame, 80) + `{"function":"last"}]}},`
	text := `{"exception":[` + strings.Repeat(one, 3) + `{"type":"E"}],"breadcrumbs":[` + strings.Repeat(`{"message":"`+line+`"},`, 40) + `{}]}`
	e := parse(t, text)
	kept, err := errortrack.Encode(e.Details)
	if err != nil || len(kept) > 128<<10 || !bytes.Contains(kept, []byte(`"last"`)) {
		t.Errorf("%d bytes are kept: %v", len(kept), err)
	}
	if len(e.Exceptions[1].Frames[1].Before) == 0 {
		t.Error("what was parsed has changed")
	}
}

func admitAll(string) error { return nil }

func TestReadEnvelope(t *testing.T) {
	t.Parallel()
	const head = "{\"event_id\":\"fc6d8c0c43fc4630ad850ee518f1b9d0\",\"dsn\":\"https://k@example.org/1\"}\n"
	for _, tt := range []struct {
		name, text string
		event      string
		kind       errs.Kind
	}{
		{"an event", head + "{\"type\":\"event\",\"length\":2}\n{}\n", "{}", 0},
		{"with line ends inside", head + "{\"type\":\"event\",\"length\":3}\n{\n}", "{\n}", 0},
		{"up to the end of the line", head + "{\"type\":\"event\"}\n{}", "{}", 0},
		{"with line ends of another kind", strings.ReplaceAll(head+"{\"type\":\"event\",\"length\":2}\n{}\n", "\n", "\r\n")[:len(head)+1] + "{\"type\":\"event\",\"length\":2}\r\n{}\r\n", "{}", 0},
		{"behind others", head + "{\"type\":\"attachment\",\"length\":4}\n\n\n\n\n\n{\"type\":\"session\"}\n{}\n\n{\"type\":\"event\"}\n{}", "{}", 0},
		{"the first of two", head + "{\"type\":\"event\"}\n{}\n{\"type\":\"event\"}\n[]\n", "{}\n", 0},
		{"nothing", head, "", 0},
		{"a long line that is read over", head + "{\"type\":\"x\"}\n" + strings.Repeat("x", 200<<10) + "\n{\"type\":\"event\"}\n{}", "{}", 0},
		{"empty", "", "", errs.KindInvalid},
		{"no header", "x\n", "", errs.KindInvalid},
		{"a list as header", "[]\n", "", errs.KindInvalid},
		{"a header without end", strings.Repeat("{", 100<<10), "", errs.KindInvalid},
		{"no header of an item", head + "x\n", "", errs.KindInvalid},
		{"cut off", head + "{\"type\":\"event\",\"length\":9}\n{}", "", errs.KindInvalid},
		{"cut off in another", head + "{\"type\":\"x\",\"length\":9}\n{}", "", errs.KindInvalid},
		{"less than nothing", head + "{\"type\":\"event\",\"length\":-1}\n{}", "", errs.KindInvalid},
		{"said to be too large", head + "{\"type\":\"event\",\"length\":99999999999}\n{}", "", errs.KindTooLarge},
		{"too large", head + "{\"type\":\"event\"}\n" + strings.Repeat("x", errortrack.MaxEvent+1), "", errs.KindTooLarge},
	} {
		got, err := errortrack.ReadEnvelope(strings.NewReader(tt.text), admitAll)
		if errs.KindOf(err) != tt.kind || (err != nil) != (tt.kind != 0) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if err == nil && (string(got.Event) != tt.event || got.ID != "fc6d8c0c43fc4630ad850ee518f1b9d0" || got.Key != "k") {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func FuzzEvent(f *testing.F) {
	for _, text := range []string{
		`{"event_id":"fc6d8c0c43fc4630ad850ee518f1b9d0","timestamp":1773500000.5,"platform":"go","level":"error","tags":{"a":1},"fingerprint":["{{ default }}"]}`,
		`{"exception":{"values":[{"type":"A","value":"b","mechanism":{"handled":false},"stacktrace":{"frames":[{"filename":"x","lineno":3,"in_app":true,"pre_context":["a"],"context_line":"b"}]}}]}}`,
		`{"message":{"message":"%s","formatted":"x"},"breadcrumbs":{"values":[{"timestamp":"2026-03-14T14:00:00Z","data":{"a":1}}]},"user":{"ip_address":"{{auto}}"}}`,
		`{"contexts":{"os":{"name":"x"}},"extra":{"a":[1]},"request":{"url":"http://x/?a"},"threads":[{"current":true}],"tags":[["a","b"]],"sdk":{"name":"x","version":1}}`,
		`{"logentry":3,"exception":[[]],"stacktrace":{"frames":{}},"timestamp":"1e999","user":[]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := errortrack.ParseEvent(text, now)
		if err != nil {
			if !errs.Is(err, errs.KindInvalid) {
				t.Fatalf("a fault: %v", err)
			}
			return
		}
		kept, err := errortrack.Encode(e.Details)
		if err != nil || len(kept) > 128<<10 || bytes.Contains(kept, []byte(`\u0000`)) {
			t.Fatalf("%d bytes: %v", len(kept), err)
		}
		for _, s := range []string{e.Title, e.Environment, e.Release, e.Type(), errortrack.Culprit(e)} {
			if len(s) > 500 || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
				t.Fatalf("%q is not kept by a database", s)
			}
		}
		if e.At.After(now) || len(errortrack.Group(e)) != 64 || e.Title == "" || e.Environment == "" {
			t.Fatalf("%+v", e)
		}
	})
}

func FuzzEnvelope(f *testing.F) {
	for _, text := range []string{
		"{}\n{\"type\":\"event\",\"length\":2}\n{}\n", "{\"dsn\":\"https://k@h/1\"}\n{\"type\":\"session\"}\n{}\n\n{\"type\":\"event\"}\n{}",
		"{}\r\n{\"type\":\"attachment\",\"length\":3}\r\n\n\n\n", "{\n", "{}\n{\"length\":1e9}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := errortrack.ReadEnvelope(bytes.NewReader(text), admitAll)
		switch {
		case err == nil && len(e.Event) > min(len(text), errortrack.MaxEvent):
			t.Fatalf("an event of %d bytes out of %d", len(e.Event), len(text))
		case err != nil && !errs.Is(err, errs.KindInvalid) && !errs.Is(err, errs.KindTooLarge):
			t.Fatalf("a fault: %v", err)
		}
	})
}
