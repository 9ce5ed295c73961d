package ci

import (
	"maps"
	"slices"

	"svc/internal/ci/config"
)

// ArtifactKind is the type of an artifact.
type ArtifactKind string

// The kinds that the server itself knows what to do with.
const (
	ArchiveFile  ArtifactKind = "archive"
	MetadataFile ArtifactKind = "metadata"
	TraceFile    ArtifactKind = "trace"
	JUnitFile    ArtifactKind = "junit"
	DotenvFile   ArtifactKind = "dotenv"

	// testCases is made of the JUnit report of a job. It is not shown.
	testCases ArtifactKind = "test_cases"
)

// ArtifactFormat is the file format of an artifact.
type ArtifactFormat string

// The formats.
const (
	ZipFormat  ArtifactFormat = "zip"
	GzipFormat ArtifactFormat = "gzip"
	RawFormat  ArtifactFormat = "raw"
)

// artifactForm is how the files of a kind are called and packed.
type artifactForm struct {
	format ArtifactFormat
	name   string
}

// artifactForms are all kinds, as the public runner and the CI file know them.
func artifactForms() map[ArtifactKind]artifactForm {
	return map[ArtifactKind]artifactForm{
		ArchiveFile:              {ZipFormat, "artifacts.zip"},
		MetadataFile:             {GzipFormat, "metadata.gz"},
		TraceFile:                {RawFormat, "job.log"},
		JUnitFile:                {GzipFormat, "junit.xml"},
		DotenvFile:               {GzipFormat, ".env"},
		"cobertura":              {GzipFormat, "cobertura-coverage.xml"},
		"jacoco":                 {GzipFormat, "jacoco-coverage.xml"},
		"codequality":            {RawFormat, "gl-code-quality-report.json"},
		"terraform":              {RawFormat, "tfplan.json"},
		"metrics":                {GzipFormat, "metrics.txt"},
		"metrics_referee":        {GzipFormat, ""},
		"network_referee":        {GzipFormat, ""},
		"sast":                   {RawFormat, "gl-sast-report.json"},
		"dast":                   {RawFormat, "gl-dast-report.json"},
		"dependency_scanning":    {RawFormat, "gl-dependency-scanning-report.json"},
		"container_scanning":     {RawFormat, "gl-container-scanning-report.json"},
		"cluster_image_scanning": {RawFormat, "gl-cluster-image-scanning-report.json"},
		"secret_detection":       {RawFormat, "gl-secret-detection-report.json"},
		"coverage_fuzzing":       {RawFormat, "gl-coverage-fuzzing.json"},
		"api_fuzzing":            {RawFormat, "gl-api-fuzzing-report.json"},
		"license_scanning":       {RawFormat, "gl-license-scanning-report.json"},
		"performance":            {RawFormat, "performance.json"},
		"browser_performance":    {RawFormat, "browser-performance.json"},
		"load_performance":       {RawFormat, "load-performance.json"},
		"requirements":           {RawFormat, "requirements.json"},
		"requirements_v2":        {RawFormat, "requirements_v2.json"},
		"accessibility":          {RawFormat, "gl-accessibility.json"},
		"cyclonedx":              {GzipFormat, "gl-sbom.cdx.json"},
		"repository_xray":        {GzipFormat, "gl-repository-xray.json"},
		"annotations":            {GzipFormat, "gl-annotations.json"},
		"lsif":                   {ZipFormat, "lsif.json"},
	}
}

// artifactUses says what a runner is to upload.
func artifactUses(a *config.Artifacts) []ArtifactUse {
	if a == nil {
		return nil
	}
	var uses []ArtifactUse
	if len(a.Paths) > 0 || a.Untracked {
		uses = append(uses, ArtifactUse{
			Name: a.Name, Untracked: a.Untracked, Paths: a.Paths, Exclude: a.Exclude, When: string(a.When),
			Kind: ArchiveFile, Format: ZipFormat, ExpireIn: a.ExpireIn,
		})
	}
	forms := artifactForms()
	for _, name := range slices.Sorted(maps.Keys(a.Reports)) {
		uses = append(uses, reportUse(forms, ArtifactKind(name), a.Reports[name], a.ExpireIn))
	}
	if c := a.CoverageReport; c != nil {
		uses = append(uses, reportUse(forms, ArtifactKind(c.Format), []string{c.Path}, a.ExpireIn))
	}
	return uses
}

// reportUse is a report, which is uploaded whatever becomes of the job.
func reportUse(forms map[ArtifactKind]artifactForm, kind ArtifactKind, paths []string, expireIn string) ArtifactUse {
	form, known := forms[kind]
	if !known {
		form = artifactForm{RawFormat, string(kind)}
	}
	return ArtifactUse{Name: form.name, Paths: paths, When: string(config.Always), Kind: kind, Format: form.format, ExpireIn: expireIn}
}
