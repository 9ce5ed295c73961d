package errortrack

import "time"

// Event is one occurrence of an error.
type Event struct {
	ID          string // set by the sender: 32 hex digits
	At          time.Time
	Environment string
	Release     string
	Title       string // message
	Tags        []Tag
	Details

	user        string   // the affected user, as the sender identifies them; see putUser
	fingerprint []string // grouping key that the sender has set
	template    string   // message with placeholders instead of values
}

// Tag is a name and a value that the sender set on an event.
type Tag struct {
	Name  string `json:"n"`
	Value string `json:"v"`
}

// Details are the fields that only the page of an event shows. They are stored as
// JSON.
type Details struct {
	Platform    string      `json:"platform,omitempty"`
	Level       string      `json:"level,omitempty"`
	Logger      string      `json:"logger,omitempty"`
	Transaction string      `json:"transaction,omitempty"`
	Server      string      `json:"server,omitempty"`
	SDK         string      `json:"sdk,omitempty"`
	Request     string      `json:"request,omitempty"`    // method and URL without its query
	User        string      `json:"user,omitempty"`       // the affected user, as shown on the page
	Exceptions  []Exception `json:"exceptions,omitempty"` // outermost first
	Crumbs      []Crumb     `json:"crumbs,omitempty"`     // newest last
	Contexts    []Context   `json:"contexts,omitempty"`
}

// Exception is an exception, or the stack trace of a message, which has no type.
type Exception struct {
	Type    string  `json:"type,omitempty"`
	Value   string  `json:"value,omitempty"`
	Module  string  `json:"module,omitempty"`
	Caught  *bool   `json:"caught,omitempty"` // whether the program handled it; nil if unknown
	Frames  []Frame `json:"frames,omitempty"` // innermost first
	Omitted int     `json:"omitted,omitempty"`
}

// Frame is one call of a stack.
type Frame struct {
	File     string   `json:"file,omitempty"`
	Path     string   `json:"path,omitempty"` // on the machine where the program ran
	Module   string   `json:"module,omitempty"`
	Function string   `json:"function,omitempty"`
	Line     int      `json:"line,omitempty"`
	Column   int      `json:"column,omitempty"`
	InApp    bool     `json:"in_app,omitempty"` // in the program itself, not in a library
	Before   []string `json:"before,omitempty"` // source lines before Source
	Source   string   `json:"source,omitempty"`
	After    []string `json:"after,omitempty"`
}

// Where returns the location of a frame: its module, its file or its path.
func (f Frame) Where() string {
	switch {
	case f.Module != "":
		return f.Module
	case f.File != "":
		return f.File
	}
	return f.Path
}

// Crumb is a breadcrumb: something that the program did before the event.
type Crumb struct {
	At       time.Time `json:"at,omitzero"`
	Category string    `json:"category,omitempty"`
	Level    string    `json:"level,omitempty"`
	Message  string    `json:"message,omitempty"`
}

// Context describes the environment: the runtime, the operating system.
type Context struct {
	Name   string `json:"name"`
	Values []Tag  `json:"values"`
}

// Type returns the type of the event's exception; empty for a message.
func (e *Event) Type() string {
	if len(e.Exceptions) == 0 {
		return ""
	}
	return e.Exceptions[0].Type
}

// culprit returns the location of the error: the transaction, or the innermost
// frame of the program itself.
func (e *Event) culprit() string {
	if e.Transaction != "" {
		return e.Transaction
	}
	for _, x := range e.Exceptions {
		frames := own(x.Frames)
		if len(frames) == 0 {
			continue
		}
		if frames[0].Function == "" {
			return frames[0].Where()
		}
		return shorten(frames[0].Function+" in "+frames[0].Where(), maxName)
	}
	return ""
}

// own returns the frames of the program itself, or all if none is marked as such.
func own(list []Frame) []Frame {
	var mine []Frame
	for _, f := range list {
		if f.InApp {
			mine = append(mine, f)
		}
	}
	if len(mine) == 0 {
		return list
	}
	return mine
}
