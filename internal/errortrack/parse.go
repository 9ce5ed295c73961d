package errortrack

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/errs"
)

// Limits of an event. An event is shown on one page, and up to KeptEvents are stored
// for each error.
const (
	maxName       = 200 // length of names in characters
	maxTitle      = 500
	maxSource     = 300 // characters of a line of source
	maxAround     = 7   // lines before and after
	maxExceptions = 8
	maxFrames     = 60
	maxOuter      = 10 // outermost frames to keep of a longer stack
	maxTags       = 50
	maxCrumbs     = 30
	maxContexts   = 12
	maxValues     = 30 // of a context
	maxParts      = 20 // of a fingerprint
	maxDetails    = 128 << 10
)

// DefaultEnvironment is the environment of events that specify none, as SDKs expect.
const DefaultEnvironment = "production"

// ParseEvent parses an event in any format of the public SDKs. Times that are too
// old or in the future are replaced by now. Invalid if the text is not a JSON
// object.
func ParseEvent(text []byte, now time.Time) (*Event, error) {
	var w wireEvent
	if err := json.Unmarshal(text, &w); err != nil {
		return nil, errs.Invalid("the event is not a JSON object").Because(err)
	}
	return w.event(now), nil
}

func (w *wireEvent) event(now time.Time) *Event {
	e := &Event{
		ID: eventID(string(w.EventID)), At: w.when(now), Release: shorten(string(w.Release), maxName),
		Environment: cmp.Or(shorten(string(w.Environment), maxName), DefaultEnvironment),
		Details: Details{
			Platform: shorten(string(w.Platform), maxName), Level: level(string(w.Level)), Logger: shorten(string(w.Logger), maxName),
			Transaction: shorten(string(cmp.Or(w.Transaction, w.Culprit)), maxName), Server: shorten(string(w.Server), maxName),
			Request: request(w.Request.value),
		},
	}
	e.SDK = shorten(strings.TrimSpace(string(w.SDK.value.Name)+" "+string(w.SDK.value.Version)), maxName)
	for i, part := range w.Fingerprint {
		if i < maxParts {
			e.fingerprint = append(e.fingerprint, shorten(string(part), maxTitle))
		}
	}
	e.Tags = words(w.Tags, maxTags)
	w.putUser(e)
	w.putExceptions(e)
	w.putTitle(e)
	w.putCrumbs(e)
	w.putContexts(e)
	return e
}

// eventID returns an event ID in canonical form, or an empty string.
func eventID(text string) string {
	text = strings.ToLower(strings.ReplaceAll(text, "-", ""))
	if len(text) != 32 || strings.Trim(text, "0123456789abcdef") != "" {
		return ""
	}
	return text
}

// oldest is the maximum age of an event. SDKs keep events while there is no network
// connection.
const oldest = 30 * 24 * time.Hour

// when returns the time of the event, or now if that is implausible: clocks of other
// machines may be wrong.
func (w *wireEvent) when(now time.Time) time.Time {
	if at := w.Timestamp.Time; at.After(now.Add(-oldest)) && at.Before(now) {
		return at
	}
	return now
}

func level(text string) string {
	switch text {
	case "fatal", "error", "warning", "info", "debug":
		return text
	case "warn":
		return "warning"
	case "log":
		return "info"
	case "critical":
		return "fatal"
	}
	return "error"
}

// request returns the requested URL without its query, which may contain secrets.
func request(r wireRequest) string {
	if r.URL == "" {
		return ""
	}
	u, err := url.Parse(string(r.URL))
	if err != nil {
		return shorten(string(r.Method), maxName)
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	return shorten(strings.TrimSpace(string(r.Method)+" "+u.String()), maxTitle)
}

// putUser sets the user of the event. The IP address distinguishes users but is
// not stored.
func (w *wireEvent) putUser(e *Event) {
	u := w.User.value
	switch {
	case u.ID != "":
		e.user = "id:" + string(u.ID)
	case u.Username != "":
		e.user = "username:" + string(u.Username)
	case u.Email != "":
		e.user = "email:" + strings.ToLower(string(u.Email))
	case u.IP != "" && u.IP != autoIP:
		e.user = "ip:" + string(u.IP)
	case u.IP == autoIP:
		e.user = autoIP
	}
	e.User = shorten(string(cmp.Or(u.Username, u.Email, u.ID)), maxName)
}

// autoIP is sent by SDKs in browsers, which do not know their own IP address.
const autoIP = "{{auto}}"

func (w *wireEvent) putExceptions(e *Event) {
	thrown := w.Exception
	if len(thrown) == 0 {
		thrown = w.OldThrown
	}
	for _, x := range slices.Backward(thrown) { // the last one is the outermost
		if len(e.Exceptions) == maxExceptions {
			break
		}
		one := Exception{Type: shorten(string(x.Type), maxName), Value: shorten(string(x.Value), 4*maxTitle), Module: shorten(string(x.Module), maxName)}
		if h := x.Mechanism.value.Handled; h.set {
			one.Caught = &h.value
		}
		one.Frames, one.Omitted = frames(x.Stack.value.Frames)
		if one.Type != "" || one.Value != "" || len(one.Frames) > 0 {
			e.Exceptions = append(e.Exceptions, one)
		}
	}
	if len(e.Exceptions) > 0 {
		// A stack trace beside an exception without one belongs to that exception.
		if stack := w.stack(); len(e.Exceptions[0].Frames) == 0 && len(stack) > 0 {
			e.Exceptions[0].Frames, e.Exceptions[0].Omitted = frames(stack)
		}
		return
	}
	if list, omitted := frames(w.stack()); len(list) > 0 {
		e.Exceptions = []Exception{{Frames: list, Omitted: omitted}}
	}
}

// stack returns the stack trace of a message: its own, or that of the thread that
// sent it.
func (w *wireEvent) stack() []wireFrame {
	if list := w.Stack.value.Frames; len(list) > 0 {
		return list
	}
	for _, t := range w.Threads {
		if t.Current.value || t.Crashed.value || len(w.Threads) == 1 {
			return t.Stack.value.Frames
		}
	}
	return nil
}

// frames converts the calls of a stack, innermost first. The middle of a very deep
// stack is omitted.
func frames(sent []wireFrame) (list []Frame, omitted int) {
	for i, f := range slices.Backward(sent) {
		if inner := len(sent) - 1 - i; len(sent) > maxFrames && inner >= maxFrames-maxOuter && i >= maxOuter {
			omitted++
			continue
		}
		one := Frame{
			File: shorten(string(f.File), maxName), Path: shorten(string(f.Path), maxTitle), Module: shorten(string(cmp.Or(f.Module, f.Package)), maxName),
			Function: shorten(string(f.Function), maxName), Line: int(f.Line), Column: int(f.Column), InApp: f.InApp.value,
			Source: shorten(string(f.Source), maxSource),
		}
		before := f.Before[max(0, len(f.Before)-maxAround):]
		for _, line := range before {
			one.Before = append(one.Before, shorten(string(line), maxSource))
		}
		for _, line := range f.After[:min(len(f.After), maxAround)] {
			one.After = append(one.After, shorten(string(line), maxSource))
		}
		list = append(list, one)
	}
	return list, omitted
}

// putTitle sets the title of the event.
func (w *wireEvent) putTitle(e *Event) {
	var said, template string
	for _, m := range []wireMessage{w.LogEntry.value, w.OldEntry.value, w.message()} {
		if text := cmp.Or(m.Formatted, m.Message); said == "" && text != "" {
			said = string(text)
			if m.Formatted != "" && m.Message != "" && m.Formatted != m.Message {
				template = string(m.Message)
			}
		}
	}
	if len(e.Exceptions) > 0 && e.Exceptions[0].Value != "" {
		said, template = e.Exceptions[0].Value, ""
	}
	e.template = shorten(template, maxTitle)
	e.Title = cmp.Or(shorten(said, maxTitle), e.Type(), "(no message)")
}

// message returns the field "message": text or an object.
func (w *wireEvent) message() wireMessage {
	var text word
	if len(w.Message) == 0 || text.UnmarshalJSON(w.Message) != nil {
		return wireMessage{}
	}
	if text != "" {
		return wireMessage{Message: text}
	}
	var m optional[wireMessage]
	if m.UnmarshalJSON(w.Message) != nil {
		return wireMessage{}
	}
	return m.value
}

func (w *wireEvent) putCrumbs(e *Event) {
	for _, c := range w.Crumbs[max(0, len(w.Crumbs)-maxCrumbs):] {
		text := string(c.Message)
		if text == "" {
			var parts []string
			for _, t := range words(c.Data.words(), maxValues) {
				parts = append(parts, t.Name+"="+t.Value)
			}
			text = strings.Join(parts, " ")
		}
		e.Crumbs = append(e.Crumbs, Crumb{At: c.At.Time, Category: shorten(string(c.Category), maxName), Level: shorten(string(c.Level), maxName), Message: shorten(text, maxTitle)})
	}
}

func (w *wireEvent) putContexts(e *Event) {
	for name, raw := range w.Contexts {
		var o object
		if o.UnmarshalJSON(raw) == nil && name != "trace" && name != "culture" { // these do not describe the error
			e.add(Context{shorten(clean(name), maxName), words(o.words(), maxValues)})
		}
	}
	sort.Slice(e.Contexts, func(i, j int) bool { return e.Contexts[i].Name < e.Contexts[j].Name })
	e.Contexts = e.Contexts[:min(len(e.Contexts), maxContexts)]
	e.add(Context{"extra", words(w.Extra.words(), maxValues)})
}

func (e *Event) add(c Context) {
	if len(c.Values) > 0 {
		e.Contexts = append(e.Contexts, c)
	}
}

// words returns the first tags, each shortened.
func words(list []Tag, limit int) []Tag {
	var kept []Tag
	for _, t := range list[:min(len(list), limit)] {
		if t.Name != "" {
			kept = append(kept, Tag{shorten(t.Name, maxName), shorten(t.Value, maxTitle)})
		}
	}
	return kept
}

// shorten truncates a text to a number of bytes at a character boundary.
func shorten(text string, limit int) string {
	text = strings.TrimRight(text, " \t\r\n")
	if len(text) <= limit {
		return text
	}
	end := limit - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// encode returns the details in the stored form. It removes less important fields
// while the details are too large.
func (d Details) encode() ([]byte, error) {
	for _, less := range []func(*Details){
		func(*Details) {},
		func(d *Details) { d.Crumbs, d.Contexts = nil, nil },
		func(d *Details) { d.keepSource(5) },
		func(d *Details) { d.keepSource(0) },
		func(d *Details) { d.Exceptions = d.Exceptions[:1] },
	} {
		less(&d)
		text, err := json.Marshal(d)
		if err != nil || len(text) <= maxDetails {
			return text, err
		}
	}
	d.Exceptions = nil
	return json.Marshal(d)
}

// keepSource removes the source code of all but the innermost frames.
func (d *Details) keepSource(frames int) {
	list := slices.Clone(d.Exceptions)
	for i := range list {
		list[i].Frames = slices.Clone(list[i].Frames)
		for k := min(frames, len(list[i].Frames)); k < len(list[i].Frames); k++ {
			f := &list[i].Frames[k]
			f.Before, f.Source, f.After = nil, "", nil
		}
	}
	d.Exceptions = list
}
