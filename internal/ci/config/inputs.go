package config

import "context"

// FormInput is an input of spec:inputs in the form that starts a pipeline.
type FormInput struct {
	Name        string
	Kind        string // string, number, boolean or array
	Description string
	Default     string
	Options     []string
	Needed      bool // it has no default
}

// Header is the header of a file.
type Header struct {
	Description string
	Inputs      []FormInput
}

// Inputs returns the inputs of the main file. The errors are those of ReadHeader.
func Inputs(ctx context.Context, src Source) ([]FormInput, error) {
	h, err := ReadHeader(ctx, src)
	return h.Inputs, err
}

// ReadHeader reads the header of the main file; it is empty if there is none. It returns
// *Error if the file is invalid; other errors come from the callbacks.
func ReadHeader(ctx context.Context, src Source) (Header, error) {
	limits := src.Limits.withDefaults()
	r := newReader(ctx, src, limits)
	content, err := r.content()
	if err != nil {
		return Header{}, err
	}
	doc, err := parse(src.Path, content, limits, r.budget)
	if err != nil || !doc.header {
		return Header{}, err
	}
	header, err := readSpec(doc.spec)
	if err != nil {
		return Header{}, err
	}
	h := Header{Description: header.description}
	for _, s := range header.inputs {
		i := FormInput{Name: s.name, Kind: s.kind, Description: s.description, Needed: s.fill == nil}
		if s.fill != nil {
			if i.Default = s.fill.text; s.fill.kind == list {
				i.Default = string(raw(s.fill))
			}
		}
		for _, o := range s.options {
			i.Options = append(i.Options, o.text)
		}
		h.Inputs = append(h.Inputs, i)
	}
	return h, nil
}
