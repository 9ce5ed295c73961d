package web

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"svc/internal/errs"
)

// form has the values of the fields of a page, and their errors.
type form struct {
	Values url.Values
	Errors map[string][]string
	Error  string // not about a single field
}

// sent returns the submitted form.
func (v *visit) sent() form { return form{Values: v.r.PostForm} }

// filled returns a form with the given values.
func filled(pairs ...string) form {
	f := form{Values: url.Values{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Values.Set(pairs[i], pairs[i+1])
	}
	return f
}

// text returns a value without surrounding spaces.
func (v *visit) text(name string) string { return strings.TrimSpace(v.prose(name)) }

// prose returns a multi-line text with LF line endings: browsers send CRLF.
func (v *visit) prose(name string) string { return lines(v.r.PostForm.Get(name), "") }

// Get returns the value of a field.
func (f form) Get(name string) string { return f.Values.Get(name) }

// Has reports whether a checkbox is checked.
func (f form) Has(name, value string) bool { return slices.Contains(f.Values[name], value) }

// refused puts the messages of a refusal beside their fields. Other errors are
// returned.
func (f *form) refused(err error) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok {
		return err
	}
	switch e.Kind {
	case errs.KindInvalid, errs.KindConflict, errs.KindUnprocessable:
	default:
		return err
	}
	f.Errors = e.Fields
	if len(e.Fields) == 0 {
		f.Error = sentence(e)
	}
	return nil
}

// refusal returns the text of a refusal, for pages that say why something is not
// offered. Other errors are returned.
func refusal(err error) (string, error) {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || !errs.IsRefusal(err) {
		return "", err
	}
	return sentence(e), nil
}

// only sets the fields that the page shows. Errors of other fields are shown
// above the form.
func (f *form) only(shown ...string) {
	var rest []string
	for _, name := range slices.Sorted(maps.Keys(f.Errors)) {
		if !slices.Contains(shown, name) {
			rest = append(rest, words(name)+" "+strings.Join(f.Errors[name], ", "))
		}
	}
	if len(rest) > 0 {
		f.Error = strings.Join(append(rest, f.Error), ". ")
	}
}

// sentence returns the text of a refusal.
func sentence(e *errs.Error) string {
	if len(e.Fields) == 0 {
		return e.Text
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
		parts = append(parts, words(name)+" "+strings.Join(e.Fields[name], ", "))
	}
	return strings.Join(parts, ". ") + "."
}

// words converts the name of a field to readable text.
func words(name string) string {
	text := strings.ReplaceAll(name, "_", " ")
	switch text {
	case "":
		return ""
	case "api":
		return "API"
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// field is one input of a form, for the templates.
type field struct {
	ID                                          string // the name, unless the page has two fields of that name
	Name, Label, Value, Kind, Hint, Auto, Place string
	Error                                       string
	Needed, First                               bool
	Rows                                        int
	Options                                     []option // of a select
}

func newField(f form, name, label string) field {
	return field{ID: name, Name: name, Label: label, Value: f.Get(name), Kind: "text", Error: strings.Join(f.Errors[name], ", ")}
}

// The functions that templates apply to a field.
func fieldKind(kind string, f field) field {
	f.Kind = kind
	if kind == "password" {
		f.Value = "" // never sent back
	}
	return f
}
func fieldID(id string, f field) field      { f.ID = id; return f }
func fieldHint(text string, f field) field  { f.Hint = text; return f }
func fieldAuto(text string, f field) field  { f.Auto = text; return f }
func fieldPlace(text string, f field) field { f.Place = text; return f }
func fieldRows(n int, f field) field        { f.Rows = n; return f }
func fieldNeeded(f field) field             { f.Needed = true; return f }
func fieldFirst(f field) field              { f.First = true; return f }

// option is an option of a select.
type option struct{ Value, Label string }

// newChoice returns a field that is a select.
func newChoice(f form, name, label string, options []option) field {
	c := newField(f, name, label)
	c.Options = options
	return c
}

// tick is a checkbox, for the templates.
type tick struct {
	Name, Label, Hint string
	On                bool
}

func newTick(f form, name, label, hint string) tick { return tick{name, label, hint, f.Has(name, "1")} }

// action is a form that consists of a button, for the templates.
type action struct {
	frame               *frame
	To, Label, Kind     string
	Ask                 string // confirmation question
	About               string // description for screen readers
	Name, Value, Symbol string // value to send
}

// Token is the CSRF token of the form.
func (a action) Token() string { return a.frame.Token() }

func newAction(f *frame, to, label string) action { return action{frame: f, To: to, Label: label} }

// The functions that templates apply to an action.
func actionKind(kind string, a action) action         { a.Kind = kind; return a }
func actionAsk(text string, a action) action          { a.Ask = text; return a }
func actionAbout(text string, a action) action        { a.About = text; return a }
func actionSends(name, value string, a action) action { a.Name, a.Value = name, value; return a }
func actionSymbol(icon string, a action) action       { a.Symbol = icon; return a }

// on returns "1" for a checked checkbox.
func on(b bool) string {
	if b {
		return "1"
	}
	return ""
}

// ticked reports whether a checkbox was checked.
func (v *visit) ticked(name string) bool { return v.text(name) != "" }

// whole returns a number of a form; an empty field is 0.
func (v *visit) whole(f *form, name string) int64 {
	text := v.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f.wrong(name, "is not a number")
	}
	return n
}

// wrong adds an error to a field.
func (f *form) wrong(name, text string) {
	if f.Errors == nil {
		f.Errors = map[string][]string{}
	}
	f.Errors[name] = append(f.Errors[name], text)
}

// bad reports whether the form has errors.
func (f form) bad() bool { return len(f.Errors) > 0 || f.Error != "" }

// showForm responds with a page whose form may have been refused.
func (v *visit) showForm(c content, f form) error {
	if f.bad() {
		return v.again(c)
	}
	return v.show(c)
}

// redirectWithFlash answers a form that is a button: it redirects to a page that
// shows the message done, or the reason why the action was refused.
func (v *visit) redirectWithFlash(err error, done, to string) error {
	if err == nil {
		return v.done(done, to)
	}
	if e, ok := errors.AsType[*errs.Error](err); ok {
		switch e.Kind {
		case errs.KindInvalid, errs.KindConflict, errs.KindUnprocessable:
			v.setFlash("bad", sentence(e))
			return v.redirect(to)
		case errs.KindForbidden:
			if e.Text != "" {
				v.setFlash("bad", e.Text)
				return v.redirect(to)
			}
		}
	}
	return err
}
