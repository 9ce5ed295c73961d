package artifact

// Kind is the type of a file.
type Kind string

// The kinds that the server itself uses.
const (
	Archive  Kind = "archive"
	Metadata Kind = "metadata"
	Trace    Kind = "trace"
	JUnit    Kind = "junit"
	Dotenv   Kind = "dotenv"

	// testCases is the index of the JUnit report of a job. It is not listed.
	testCases Kind = "test_cases"
)

// Format is the file format of a file.
type Format string

// The formats.
const (
	Zip  Format = "zip"
	Gzip Format = "gzip"
	Raw  Format = "raw"
)

// form is the format and the default name of the files of a kind.
type form struct {
	format Format
	name   string
}

// forms returns all kinds of the runner protocol and of artifacts:reports.
func forms() map[Kind]form {
	return map[Kind]form{
		Archive:                  {Zip, "artifacts.zip"},
		Metadata:                 {Gzip, "metadata.gz"},
		Trace:                    {Raw, "job.log"},
		JUnit:                    {Gzip, "junit.xml"},
		Dotenv:                   {Gzip, ".env"},
		"cobertura":              {Gzip, "cobertura-coverage.xml"},
		"jacoco":                 {Gzip, "jacoco-coverage.xml"},
		"codequality":            {Raw, "gl-code-quality-report.json"},
		"terraform":              {Raw, "tfplan.json"},
		"metrics":                {Gzip, "metrics.txt"},
		"metrics_referee":        {Gzip, ""},
		"network_referee":        {Gzip, ""},
		"sast":                   {Raw, "gl-sast-report.json"},
		"dast":                   {Raw, "gl-dast-report.json"},
		"dependency_scanning":    {Raw, "gl-dependency-scanning-report.json"},
		"container_scanning":     {Raw, "gl-container-scanning-report.json"},
		"cluster_image_scanning": {Raw, "gl-cluster-image-scanning-report.json"},
		"secret_detection":       {Raw, "gl-secret-detection-report.json"},
		"coverage_fuzzing":       {Raw, "gl-coverage-fuzzing.json"},
		"api_fuzzing":            {Raw, "gl-api-fuzzing-report.json"},
		"license_scanning":       {Raw, "gl-license-scanning-report.json"},
		"performance":            {Raw, "performance.json"},
		"browser_performance":    {Raw, "browser-performance.json"},
		"load_performance":       {Raw, "load-performance.json"},
		"requirements":           {Raw, "requirements.json"},
		"requirements_v2":        {Raw, "requirements_v2.json"},
		"accessibility":          {Raw, "gl-accessibility.json"},
		"cyclonedx":              {Gzip, "gl-sbom.cdx.json"},
		"repository_xray":        {Gzip, "gl-repository-xray.json"},
		"annotations":            {Gzip, "gl-annotations.json"},
		"lsif":                   {Zip, "lsif.json"},
	}
}

// FormOf returns the format and the default name of the files of a kind. Unknown
// kinds are stored as they are.
func FormOf(kind Kind) (Format, string) {
	f, known := forms()[kind]
	if !known {
		return Raw, string(kind)
	}
	return f.format, f.name
}
