package sshd

import (
	"strings"
	"unicode/utf8"

	"svc/internal/lfs"
	"svc/internal/project"
)

// The git services.
const (
	uploadPack    = "git-upload-pack"
	receivePack   = "git-receive-pack"
	uploadArchive = "git-upload-archive"

	// lfsAuthenticate is the command with which clients of Git LFS get a token for
	// HTTP.
	lfsAuthenticate = "git-lfs-authenticate"
)

// command is a parsed command line of a client.
type command struct {
	service   string
	project   project.Ref
	alias     string        // of the project, if the command has no path
	operation lfs.Operation // of lfsAuthenticate
}

const (
	maxCommand = 8 << 10
	maxPath    = 4096 // longer than any path of a project
)

// parseCommand parses a command line: a service and the quoted path of a repository,
// and for lfsAuthenticate the operation. ok is false for other lines.
func parseCommand(line string) (c command, ok bool) {
	if len(line) > maxCommand {
		return command{}, false
	}
	list, ok := words(line)
	if !ok {
		return command{}, false
	}
	if len(list) == 3 && list[0] == "git" {
		list = []string{"git-" + list[1], list[2]}
	}
	var operation lfs.Operation
	switch {
	case len(list) == 3 && list[0] == lfsAuthenticate:
		operation = lfs.Operation(list[2])
		if operation != lfs.Download && operation != lfs.Upload {
			return command{}, false
		}
	case len(list) == 2 && (list[0] == uploadPack || list[0] == receivePack || list[0] == uploadArchive):
	default:
		return command{}, false
	}
	path := strings.TrimPrefix(list[1], "/")
	path = strings.TrimSuffix(strings.TrimSuffix(path, "/"), ".git")
	c = command{service: list[0], operation: operation}
	switch {
	case len(path) > maxPath || !utf8.ValidString(path):
	// The path of a project contains a namespace, so it is never a number; the path
	// of a group wiki does not. Any other name without a namespace is an alias.
	case !strings.Contains(path, "/") && !strings.HasSuffix(path, ".wiki"):
		c.alias = path
	default:
		c.project = project.Ref(path)
	}
	return c, true
}

// words splits a line like a shell, with the quoting that git clients use: single
// and double quotes, and backslashes. Nothing is expanded.
func words(line string) ([]string, bool) {
	var list []string
	var word []byte
	inWord := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case 0:
			return nil, false
		case ' ', '\t', '\n', '\r':
			if inWord {
				list, word, inWord = append(list, string(word)), nil, false
			}
		case '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				return nil, false
			}
			word, inWord = append(word, line[i+1:i+1+end]...), true
			i += end + 1
		case '"':
			text, n, ok := doubleQuoted(line[i+1:])
			if !ok {
				return nil, false
			}
			word, inWord = append(word, text...), true
			i += n
		case '\\':
			if i++; i == len(line) || line[i] == 0 {
				return nil, false
			}
			word, inWord = append(word, line[i]), true
		default:
			word, inWord = append(word, c), true
		}
	}
	if inWord {
		list = append(list, string(word))
	}
	return list, true
}

// doubleQuoted reads up to the closing quote, and returns the text and the number of
// bytes read.
func doubleQuoted(line string) (text string, n int, ok bool) {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == 0:
			return "", 0, false
		case c == '"':
			return b.String(), i + 1, true
		case c == '\\' && i+1 < len(line) && strings.IndexByte("\\\"$`", line[i+1]) >= 0:
			i++
			b.WriteByte(line[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, false
}
