package web

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"svc/internal/errs"
)

// form is what stands in the fields of a page, and what is wrong with it.
type form struct {
	Values url.Values
	Errors map[string][]string
	Error  string // of no single field
}

// sent is the form as it was sent.
func (v *visit) sent() form { return form{Values: v.r.PostForm} }

// filled is a form that is shown with these values.
func filled(pairs ...string) form {
	f := form{Values: url.Values{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Values.Set(pairs[i], pairs[i+1])
	}
	return f
}

// text is a value without the spaces around it.
func (v *visit) text(name string) string { return strings.TrimSpace(v.r.PostForm.Get(name)) }

// Get is a value.
func (f form) Get(name string) string { return f.Values.Get(name) }

// Has reports whether a box is ticked.
func (f form) Has(name, value string) bool { return slices.Contains(f.Values[name], value) }

// refused puts the reasons of a refusal beside the fields. An error that is
// none of those is given back.
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

// only names the fields that the page shows: what is wrong with others is
// told above the form.
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

// sentence is a refusal for people.
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

// words makes a name of a field readable.
func words(name string) string {
	text := strings.ReplaceAll(name, "_", " ")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// field is one input of a form, for the templates.
type field struct {
	Name, Label, Value, Kind, Hint, Auto, Place string
	Error                                       string
	Needed, First                               bool
	Rows                                        int
}

func newField(f form, name, label string) field {
	return field{Name: name, Label: label, Value: f.Get(name), Kind: "text", Error: strings.Join(f.Errors[name], ", ")}
}

// The functions that templates put behind a field.
func fieldKind(kind string, f field) field {
	f.Kind = kind
	if kind == "password" {
		f.Value = "" // never sent back
	}
	return f
}
func fieldHint(text string, f field) field  { f.Hint = text; return f }
func fieldAuto(text string, f field) field  { f.Auto = text; return f }
func fieldPlace(text string, f field) field { f.Place = text; return f }
func fieldRows(n int, f field) field        { f.Rows = n; return f }
func fieldNeeded(f field) field             { f.Needed = true; return f }
func fieldFirst(f field) field              { f.First = true; return f }
