package rows

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/plan"
)

// maxNumber is the highest number of an issue or merge request. It leaves room for new
// ones.
const maxNumber = 1 << 40

var (
	hexID    = regexp.MustCompile(`^[0-9a-f]{1,64}$`)
	eventKey = regexp.MustCompile(`^[a-z_]{0,50}$`)
)

// checkSHA refuses what is not the ID of a commit; it may be empty.
func checkSHA(wrong errs.Fields, name string, list ...string) {
	for _, sha := range list {
		if id, ok := git.ParseOID(sha); sha != "" && (!ok || string(id) != sha) {
			wrong.Set(name, "is not the ID of a commit")
		}
	}
}

func among(wrong errs.Fields, name, value string, values ...string) {
	if !slices.Contains(values, value) {
		wrong.Set(name, "is not included in the list")
	}
}

func short(wrong errs.Fields, name, value string, most int) {
	if utf8.RuneCountInString(value) > most {
		wrong.Set(name, "is too long (maximum is %d characters)", most)
	}
}

func filled(wrong errs.Fields, name, value string, most int) {
	if strings.TrimSpace(value) == "" {
		wrong.Set(name, "can't be blank")
	}
	short(wrong, name, value, most)
}

func text(wrong errs.Fields, name, value string) {
	if len(value) > plan.MaxText {
		wrong.Set(name, "is too long (maximum is %d bytes)", plan.MaxText)
	}
}

func day(wrong errs.Fields, name, value string) {
	if _, err := time.Parse(time.DateOnly, value); err != nil && value != "" {
		wrong.Set(name, "is not a date")
	}
}

// inRange refuses numbers that no row has.
func inRange(wrong errs.Fields, name string, n, least, most int64) {
	if n < least || n > most {
		wrong.Set(name, "is invalid")
	}
}
