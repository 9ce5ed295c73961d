package blob

import (
	"fmt"
	"strconv"
	"strings"
)

// A file on disk is the object's bytes and a trailer of fixed length: a line
// of text with the size and the content type, filled up with spaces.
//
//	\nblob 1 <size> <content type>   …   \n
//
// So an object is one file, which any tool copies whole; what was cut short
// is noticed; the size follows from that of the file; and most programs can
// still read the file as it is, because the bytes come first.
const (
	trailerLen  = 256
	trailerForm = "\nblob 1 "
	maxType     = trailerLen - len(trailerForm) - len("9223372036854775807 ") - len("\n")
)

// trailer makes the end of a file. The content type has been checked.
func trailer(size int64, contentType string) []byte {
	text := trailerForm + strconv.FormatInt(size, 10) + " " + contentType
	return fmt.Appendf(nil, "%-*s\n", trailerLen-1, text)
}

// parseTrailer reads the end of a file; false means that it is not one of
// ours, or was cut short.
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
