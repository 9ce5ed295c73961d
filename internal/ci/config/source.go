package config

import (
	"context"
	"io/fs"
)

// Place is a commit of a project with a file of the configuration.
type Place struct {
	Project string `json:"project"` // full path
	Commit  string `json:"commit"`
}

// Files reads repositories for a configuration. It answers for the person who
// starts the pipeline: what that person may not read is fs.ErrNotExist. Any
// other error is a fault, and ends the work.
type Files interface {
	// Read returns a file, of which no more than limit+1 bytes are needed. The path
	// has no leading slash.
	Read(ctx context.Context, at Place, path string, limit int) ([]byte, error)
	// Paths lists all files, sorted. It is asked once for each place.
	Paths(ctx context.Context, at Place) ([]string, error)
	// Find returns a project at a ref, or at the head of its default branch. A
	// project that is not there is fs.ErrNotExist; a ref that is not there is a
	// Place without a commit.
	Find(ctx context.Context, project, ref string) (Place, error)
}

// Input is what is known of a pipeline before its jobs are made.
type Input struct {
	// At is the project of the pipeline and its commit.
	At    Place
	Files Files
	// Source says what starts the pipeline, as in CI_PIPELINE_SOURCE: push,
	// web, schedule, merge_request_event, parent_pipeline …
	Source string
	// Ref is the name of the branch or tag; Tag says which.
	Ref string
	Tag bool
	// MergeRequest says that the pipeline runs for a merge request, so that it
	// is neither one of a branch nor one of a tag.
	MergeRequest bool
	// Predefined are the variables that the server sets (CI_*). Those of the
	// YAML win over them.
	Predefined []Variable
	// Variables win over those of the YAML: of the instance, of groups, of the
	// project, of a schedule or trigger, and of the pipeline. Later ones win
	// over earlier ones of the same name.
	Variables []Variable
	// Changed lists the files that the pipeline is about: those of the push, of
	// the merge request, or since compareTo, a ref, when that is not empty.
	// known is false when there is nothing to compare with, as for a schedule
	// or a new branch: then every rules:changes is met. A compareTo that is
	// no ref is fs.ErrNotExist. Nil is the same as not known.
	Changed func(ctx context.Context, compareTo string) (paths []string, known bool, err error)
}

// Source is a configuration to load. Only Input.Files, and Path or Content, are
// needed.
type Source struct {
	Input Input
	// Path is the main file; Content is read instead, when it is not nil.
	Path    string
	Content []byte
	// Inputs are values for spec:inputs of the main file: strings, numbers,
	// booleans and lists, as package encoding/json gives them, or Texts.
	Inputs map[string]any
	// Templates are the files of include:template; nil when there are none.
	Templates fs.FS
	// Remote fetches a file of include:remote; nil when that is not allowed.
	// Its error is shown to the author of the file.
	Remote func(ctx context.Context, url string, limit int) ([]byte, error)
	// Host is the host of this server with its port, which the addresses of its
	// components start with.
	Host string
	// Component finds a version of a project with components: a commit, tag,
	// branch, ~latest or a part of a semantic version. What is not there is
	// fs.ErrNotExist for a project, and a Place without a commit for a version; nil
	// when there are no components. released is the tag of the release that the
	// version stands for; empty if it is not released.
	Component func(ctx context.Context, project, version string) (at Place, released string, err error)
	// Artifact reads a file out of the artifacts of a job of the parent
	// pipeline; nil when there is no parent. A missing one is fs.ErrNotExist.
	Artifact func(ctx context.Context, job, path string, limit int) ([]byte, error)
	Limits   Limits
}

// Texts are the value of an input of which nothing is known but how it was
// written, as in a form: the type of the input says what it is.
type Texts []string

// Included is a file that was included, in the order of reading.
type Included struct {
	// Type is local, file (of another project), remote, template, artifact or
	// component.
	Type     string `json:"type"`
	Location string `json:"location"`
	// Project, Ref and Job are as the include has them.
	Project string `json:"project,omitempty"`
	Ref     string `json:"ref,omitempty"`
	Job     string `json:"job,omitempty"`
	// Path is the file of a component, whose location is its address.
	Path string `json:"path,omitempty"`
	// At is the location of the file; empty for remote files and templates.
	At Place `json:"at,omitzero"`
	// From is the location of the including file.
	From Place `json:"from,omitzero"`
}
