package config

import "context"

// FormInput is what a form asks for that starts a pipeline of a file with
// spec:inputs.
type FormInput struct {
	Name        string
	Kind        string // string, number, boolean or array
	Description string
	Default     string
	Options     []string
	Needed      bool // it has no default
}

// Inputs reads which inputs the main file asks for. It returns *Error for a
// file that is broken; other errors come from the callbacks.
func Inputs(ctx context.Context, src Source) ([]FormInput, error) {
	limits := src.Limits.withDefaults()
	r := newReader(ctx, src, limits)
	content, err := r.content()
	if err != nil {
		return nil, err
	}
	doc, err := parse(src.Path, content, limits, r.budget)
	if err != nil || !doc.header {
		return nil, err
	}
	specs, err := readSpec(doc.spec)
	if err != nil {
		return nil, err
	}
	var found []FormInput
	for _, s := range specs {
		i := FormInput{Name: s.name, Kind: s.kind, Description: s.description, Needed: s.fill == nil}
		if s.fill != nil {
			if i.Default = s.fill.text; s.fill.kind == list {
				i.Default = string(raw(s.fill))
			}
		}
		for _, o := range s.options {
			i.Options = append(i.Options, o.text)
		}
		found = append(found, i)
	}
	return found, nil
}
