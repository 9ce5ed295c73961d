package blob

import (
	"fmt"
	"strconv"
	"strings"
)

// A file on disk contains the bytes of the object and a trailer of fixed length: a
// line of text with the size and the content type, padded with spaces.
//
//	\nblob 1 <size> <content type>   …   \n
//
// So an object is one file, a truncated file is detected, the size of the object
// follows from the size of the file, and most programs can read the file, because
// the bytes come first.
const (
	trailerLen  = 256
	trailerForm = "\nblob 1 "
	maxType     = trailerLen - len(trailerForm) - len("9223372036854775807 ") - len("\n")
)

// trailer returns the trailer of a file. The caller must check the content type.
func trailer(size int64, contentType string) []byte {
	text := trailerForm + strconv.FormatInt(size, 10) + " " + contentType
	return fmt.Appendf(nil, "%-*s\n", trailerLen-1, text)
}

// parseTrailer parses the trailer of a file. It returns false if it is not valid,
// for example because the file was truncated.
func parseTrailer(b []byte) (size int64, contentType string, ok bool) {
	if len(b) != trailerLen || b[trailerLen-1] != '\n' {
		return 0, "", false
	}
	text, ok := strings.CutPrefix(strings.TrimRight(string(b[:trailerLen-1]), " "), trailerForm)
	if !ok {
		return 0, "", false
	}
	digits, contentType, ok := strings.Cut(text, " ")
	size, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || size < 0 || strconv.FormatInt(size, 10) != digits {
		return 0, "", false
	}
	o, err := Options{ContentType: contentType}.checked()
	return size, contentType, err == nil && o.ContentType == contentType
}
