package errortrack

import "time"

// Event is one time that something went wrong, as it is kept.
type Event struct {
	ID          string // of the sender: 32 hex digits
	At          time.Time
	Environment string
	Release     string
	Title       string // message
	Tags        []Tag
	Details

	user        string   // who met it, as the sender knows them; see identity
	fingerprint []string // grouping key that the sender has set
	template    string   // a message before its values were put in
}

// Tag is a word that the sender put on an event.
type Tag struct {
	Name  string `json:"n"`
	Value string `json:"v"`
}

// Details are what only the page of an event shows. They are stored as JSON.
type Details struct {
	Platform    string      `json:"platform,omitempty"`
	Level       string      `json:"level,omitempty"`
	Logger      string      `json:"logger,omitempty"`
	Transaction string      `json:"transaction,omitempty"`
	Server      string      `json:"server,omitempty"`
	SDK         string      `json:"sdk,omitempty"`
	Request     string      `json:"request,omitempty"`    // method and address, without its query
	User        string      `json:"user,omitempty"`       // for users
	Exceptions  []Exception `json:"exceptions,omitempty"` // the one that was caught last comes first
	Crumbs      []Crumb     `json:"crumbs,omitempty"`     // the newest comes last
	Contexts    []Context   `json:"contexts,omitempty"`
}

// Exception is an exception, or the stack trace of a message, which has no type.
type Exception struct {
	Type    string  `json:"type,omitempty"`
	Value   string  `json:"value,omitempty"`
	Module  string  `json:"module,omitempty"`
	Caught  *bool   `json:"caught,omitempty"` // whether the program handled it; nil if unknown
	Frames  []Frame `json:"frames,omitempty"` // the innermost comes first
	Omitted int     `json:"omitted,omitempty"`
}

// Frame is one call of a stack.
type Frame struct {
	File     string   `json:"file,omitempty"`
	Path     string   `json:"path,omitempty"` // on the machine where it ran
	Module   string   `json:"module,omitempty"`
	Function string   `json:"function,omitempty"`
	Line     int      `json:"line,omitempty"`
	Column   int      `json:"column,omitempty"`
	InApp    bool     `json:"in_app,omitempty"` // of the program itself, not of a library
	Before   []string `json:"before,omitempty"` // the source around it
	Source   string   `json:"source,omitempty"`
	After    []string `json:"after,omitempty"`
}

// Where names the place of a frame: its module, or its file.
func (f Frame) Where() string {
	switch {
	case f.Module != "":
		return f.Module
	case f.File != "":
		return f.File
	}
	return f.Path
}

// Crumb is something that happened before.
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

// Type is that of the exception that the event is about, empty for a message.
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
