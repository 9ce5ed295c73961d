package repo

import (
	"strings"
	"time"

	"github.com/ncruces/go-strftime"
)

// formatDate formats a time by a strftime pattern, as configuration files have it.
// The result is one line: it is part of a heading.
func formatDate(pattern string, at time.Time) string {
	return strings.Join(strings.Fields(strftime.Format(pattern, at)), " ")
}
