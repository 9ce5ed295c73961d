package changelog

import (
	"strings"
	"time"

	"github.com/ncruces/go-strftime"
)

// formatDate formats a time with the strftime format of a configuration file.
// The result is a single line, because it is part of a heading.
func formatDate(pattern string, at time.Time) string {
	return strings.Join(strings.Fields(strftime.Format(pattern, at)), " ")
}
