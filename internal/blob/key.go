package blob

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"svc/internal/errs"
)

// Keys are shorter than the limit of S3, 1024 bytes including the prefix. Their
// parts are not longer than a file name may be.
const (
	MaxKey  = 900
	maxPart = 255
)

// CheckKey returns Invalid for a key that is empty or too long, that starts or ends
// with "/", or that has an empty part, a part "." or "..", a control character, a
// backslash or invalid UTF-8.
func CheckKey(key string) error {
	if key == "" {
		return errs.Invalid("object key is empty")
	}
	if err := checkText(key); err != nil {
		return err
	}
	for part := range strings.SplitSeq(key, "/") {
		switch {
		case part == "":
			return errs.Invalid("object key has an empty part")
		case part == "." || part == "..":
			return errs.Invalid("object key has a part %q", part)
		case len(part) > maxPart:
			return errs.Invalid("object key has a part of over %d bytes", maxPart)
		}
	}
	return nil
}

// checkPrefix is like CheckKey, for a prefix of a key.
func checkPrefix(prefix string) error {
	dir, rest := splitPrefix(prefix)
	if dir != "" {
		if err := CheckKey(dir); err != nil {
			return err
		}
	} else if strings.HasPrefix(prefix, "/") {
		return errs.Invalid("object key has an empty part")
	}
	return checkText(rest)
}

// splitPrefix splits a prefix after the last "/" into the directory, without "/",
// and the rest.
func splitPrefix(prefix string) (dir, rest string) {
	i := strings.LastIndexByte(prefix, '/')
	return prefix[:max(i, 0)], prefix[i+1:]
}

func checkText(key string) error {
	if len(key) > MaxKey {
		return errs.Invalid("object key is over %d bytes", MaxKey)
	}
	if !utf8.ValidString(key) {
		return errs.Invalid("object key is not UTF-8")
	}
	for _, r := range key {
		// The last two are not allowed in XML, in which S3 lists keys.
		if unicode.IsControl(r) || r == '\\' || r == 0xfffe || r == 0xffff {
			return errs.Invalid("object key has a character that is not allowed")
		}
	}
	return nil
}
