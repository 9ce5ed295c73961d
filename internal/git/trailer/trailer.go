// Package trailer parses the trailers of commit messages.
package trailer

import "strings"

// Trailer is a line like "Signed-off-by: Ann <ann@example.com>" at the end of a message. A
// value with continuation lines is joined to one line.
type Trailer struct{ Key, Value string }

// Parse returns the trailers of a commit message, as git log and git
// interpret-trailers --parse --no-divider do: they are in the last paragraph,
// unless that is the title. All its lines must be trailers; with one that git
// itself writes, a quarter of them is enough.
func Parse(message string) []Trailer {
	message, _, _ = strings.Cut(message, "\x00")
	lines := lastParagraph(messageLines(message))
	if !mostlyTrailers(lines) {
		return nil
	}
	var list []Trailer
	for i := 0; i < len(lines); i++ {
		key, value, ok := splitTrailer(lines[i])
		if !ok {
			continue
		}
		for i+1 < len(lines) && isSpaced(lines[i+1]) {
			i++
			value += " " + strings.TrimLeft(lines[i], space)
		}
		list = append(list, Trailer{key, strings.Trim(value, space)})
	}
	return list
}

// space are the characters that git treats as space.
const space = " \t\r\n"

func isSpaced(line string) bool {
	return line != "" && strings.ContainsRune(space, rune(line[0]))
}
func isComment(line string) bool { return strings.HasPrefix(line, "#") }
func isBlank(line string) bool   { return strings.Trim(line, space) == "" }

// splitTrailer splits "Key : value". A key consists of letters, digits and dashes.
func splitTrailer(line string) (key, value string, ok bool) {
	before, value, found := strings.Cut(line, ":")
	key = strings.TrimRight(before, " \t")
	if !found || key == "" {
		return "", "", false
	}
	for i := range len(key) {
		c := key[i] | 0x20
		if !(c >= 'a' && c <= 'z' || key[i] >= '0' && key[i] <= '9' || key[i] == '-') {
			return "", "", false
		}
	}
	return key, value, true
}

// messageLines returns the lines of a message without the parts at its end that git adds for
// the author: comments, the list of conflicts, and everything below a scissors line.
func messageLines(message string) []string {
	const scissors = "# ------------------------ >8 ------------------------"
	lines := strings.Split(strings.TrimSuffix(message, "\n"), "\n")
	end, conflicts := 0, false // the line after the last one of the message
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, scissors):
			return lines[:end]
		case line == "" || isComment(line):
		case line == "Conflicts:" && (i < len(lines)-1 || strings.HasSuffix(message, "\n")):
			conflicts = true
		case conflicts && line[0] == '\t':
		default:
			end, conflicts = i+1, false
		}
	}
	return lines[:end]
}

// lastParagraph returns the lines after the last blank line; nil if that is the title.
func lastParagraph(lines []string) []string {
	title := 0
	for title < len(lines) && (isComment(lines[title]) || !isBlank(lines[title])) {
		title++
	}
	for len(lines) > title && isBlank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	for i := len(lines) - 1; i >= title; i-- {
		if isBlank(lines[i]) {
			return lines[i+1:]
		}
	}
	return nil
}

// mostlyTrailers reports whether a paragraph consists of trailers.
func mostlyTrailers(lines []string) bool {
	trailers, others, generated := 0, 0, false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		written := strings.HasPrefix(line, "Signed-off-by: ") || strings.HasPrefix(line, "(cherry picked from commit ")
		_, _, isTrailer := splitTrailer(line)
		switch {
		case isComment(line):
		case written || isTrailer:
			trailers++
			generated = generated || written
			for i+1 < len(lines) && isSpaced(lines[i+1]) {
				i++ // a continuation line
			}
		default:
			others++
		}
	}
	return trailers > 0 && others == 0 || generated && trailers*3 >= others
}
