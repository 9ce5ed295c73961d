package config

import (
	"context"
	"io/fs"
)

// Place is a commit of a project that contains a file of the configuration.
type Place struct {
	Project string `json:"project"` // full path
	Commit  string `json:"commit"`
}

// Files reads the files of a configuration from repositories, with the permissions of the
// user who starts the pipeline: a file that they may not read is fs.ErrNotExist. Any other
// error is an error of the server and stops the work.
type Files interface {
	// Read returns the content of a file; content beyond limit+1 bytes may be left out.
	// The path has no leading slash.
	Read(ctx context.Context, at Place, path string, limit int) ([]byte, error)
	// Paths lists all files, sorted. It is called once for each place.
	Paths(ctx context.Context, at Place) ([]string, error)
	// Find returns the commit of a project at a ref, or at the head of its default
	// branch. It returns fs.ErrNotExist if the project does not exist, and a Place without
	// a commit if the ref does not.
	Find(ctx context.Context, project, ref string) (Place, error)
}

// Input is the data about a pipeline that exists before its jobs are created.
type Input struct {
	// At is the project of the pipeline and its commit.
	At    Place
	Files Files
	// Source is the source of the pipeline, as in CI_PIPELINE_SOURCE: push, web, schedule,
	// merge_request_event, parent_pipeline …
	Source string
	// Ref is the name of the branch or tag; Tag distinguishes them.
	Ref string
	Tag bool
	// MergeRequest reports that the pipeline is a merge request pipeline, which is neither
	// a branch pipeline nor a tag pipeline.
	MergeRequest bool
	// Predefined are the variables that the server sets (CI_*). Variables of the YAML
	// override them.
	Predefined []Variable
	// Variables override those of the YAML: variables of the instance, of groups, of the
	// project, of a schedule or trigger, and of the pipeline. Later ones override earlier
	// ones of the same name.
	Variables []Variable
	// Scoped returns the Variables for the jobs of an environment. Nil if those of no
	// environment differ.
	Scoped func(environment string) ([]Variable, error)
	// Changed lists the changed files: those of the push, of the merge request, or since
	// the ref compareTo if it is not empty. known is false if there is nothing to compare
	// with, as for a schedule or a new branch; then every rules:changes matches. It
	// returns fs.ErrNotExist if compareTo does not exist. If Changed is nil, the changes
	// are not known.
	Changed func(ctx context.Context, compareTo string) (paths []string, known bool, err error)
}

// Source is a configuration to load. Only Input.Files, and Path or Content, are required.
type Source struct {
	Input Input
	// Path is the main file. If Content is not nil, it is used instead.
	Path    string
	Content []byte
	// Inputs are values for spec:inputs of the main file: strings, numbers, booleans and
	// lists, as package encoding/json decodes them, or Texts.
	Inputs map[string]any
	// Templates are the files of include:template; nil if there are none.
	Templates fs.FS
	// Remote fetches a file of include:remote; nil if that is not allowed. Its error is
	// shown to the author of the file.
	Remote func(ctx context.Context, url string, limit int) ([]byte, error)
	// Host is the host and port of this server, with which the addresses of its components
	// start.
	Host string
	// Component resolves a version of a project with components: a commit, tag, branch,
	// ~latest or a part of a semantic version. It returns fs.ErrNotExist if the project
	// does not exist, and a Place without a commit if the version does not. released is
	// the tag of the release that the version resolves to; empty if it is not released.
	// Nil if there are no components.
	Component func(ctx context.Context, project, version string) (at Place, released string, err error)
	// PublicFiles and PublicComponent are Input.Files and Component with the permissions
	// of an anonymous user, for the includes of remote files; nil if there are none.
	PublicFiles     Files
	PublicComponent func(ctx context.Context, project, version string) (at Place, released string, err error)
	// Artifact reads a file from the artifacts of a job of the parent pipeline; nil if
	// there is no parent. A missing file is fs.ErrNotExist.
	Artifact func(ctx context.Context, job, path string, limit int) ([]byte, error)
	Limits   Limits
}

// Texts is the value of an input as typed into a form. Its type is determined by the type
// of the input.
type Texts []string

// Included is an included file, in the order of reading.
type Included struct {
	// Type is local, file (of another project), remote, template, artifact or
	// component.
	Type     string `json:"type"`
	Location string `json:"location"`
	// Project, Ref and Job are as written in the include.
	Project string `json:"project,omitempty"`
	Ref     string `json:"ref,omitempty"`
	Job     string `json:"job,omitempty"`
	// Path is the file of a component, whose Location is its address.
	Path string `json:"path,omitempty"`
	// At is the location of the file; empty for remote files and templates.
	At Place `json:"at,omitzero"`
	// From is the location of the including file.
	From Place `json:"from,omitzero"`
}
