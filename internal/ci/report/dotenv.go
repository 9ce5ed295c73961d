package report

import (
	"bufio"
	"io"
	"strings"

	"svc/internal/ci/config"
	"svc/internal/errs"
)

const (
	// MaxDotenv is the maximum size of a dotenv report, compressed and uncompressed.
	MaxDotenv = 5 << 10
	// maxDotenvVariables is the maximum number of its variables.
	maxDotenvVariables = 150
)

// DotenvTooLarge returns the error for a report that exceeds MaxDotenv.
func DotenvTooLarge() error {
	return errs.Invalid("Dotenv file size exceeds the limit of %d bytes", MaxDotenv)
}

// CheckDotenv checks that each line of a dotenv report is empty, a comment or
// NAME=value. Invalid.
func CheckDotenv(in io.Reader) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return errs.Invalid("Invalid dotenv file").Because(err)
	}
	if len(text) > MaxDotenv {
		return DotenvTooLarge()
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, _, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !ok || !config.ValidKey(strings.TrimSpace(key)) {
			return errs.Invalid("Invalid dotenv file: a line is not NAME=value")
		}
		if n++; n > maxDotenvVariables {
			return errs.Invalid("Dotenv files cannot have more than %d variables", maxDotenvVariables)
		}
	}
	return nil
}

// ParseDotenv returns the variables of a dotenv report. Other lines are ignored.
func ParseDotenv(in io.Reader) []config.Variable {
	var out []config.Variable
	lines := bufio.NewScanner(in)
	for lines.Scan() && len(out) < maxDotenvVariables {
		key, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "=")
		key = strings.TrimSpace(strings.TrimPrefix(key, "export "))
		if !ok || !config.ValidKey(key) {
			continue
		}
		value = strings.TrimSpace(value)
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		out = append(out, config.Variable{Key: key, Value: value})
	}
	return out
}
