// Package object parses and encodes the objects of git: commits, trees and tags,
// and their signatures.
package object

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"

	"svc/internal/git/refstore"
)

// OID is an object ID in lowercase hex.
type OID = refstore.OID

// Type is an object type.
type Type string

// The object types. A submodule is a tree entry of type commit.
const (
	TypeCommit Type = "commit"
	TypeTree   Type = "tree"
	TypeBlob   Type = "blob"
	TypeTag    Type = "tag"
)

// Entry is an entry of a tree.
type Entry struct {
	OID  OID
	Name string
	Path string // path from the root
	Type Type
	Mode string // six octal digits
}

// Key returns the sort key of an entry in a recursive walk, in which a tree comes
// before its entries. A walk can continue after a key.
func (e Entry) Key() string {
	if e.Type == TypeTree {
		return e.Path + "/"
	}
	return e.Path
}

// SortName returns the key by which git sorts the entries of a tree.
func SortName(e Entry) string {
	if e.Type == TypeTree {
		return e.Name + "/"
	}
	return e.Name
}

// ErrMalformed means that the content of an object cannot be parsed.
var ErrMalformed = errors.New("malformed object")

// ParseTree parses the content of a tree. Paths are left empty.
func ParseTree(content []byte) ([]Entry, error) {
	const size = 20 // length of a binary ID
	entries := make([]Entry, 0, len(content)/(size+16))
	for len(content) > 0 {
		space := bytes.IndexByte(content, ' ')
		if space < 5 || space > 6 {
			return nil, ErrMalformed
		}
		mode, err := strconv.ParseUint(string(content[:space]), 8, 32)
		if err != nil {
			return nil, ErrMalformed
		}
		end := bytes.IndexByte(content[space:], 0)
		if end < 2 || len(content) < space+end+1+size {
			return nil, ErrMalformed
		}
		name := string(content[space+1 : space+end])
		if strings.Contains(name, "/") {
			return nil, ErrMalformed
		}
		content = content[space+end+1:]
		e := Entry{OID: OID(hex.EncodeToString(content[:size])), Name: name, Type: typeOf(mode)}
		e.Mode = modeText(mode)
		entries = append(entries, e)
		content = content[size:]
	}
	return entries, nil
}

func typeOf(mode uint64) Type {
	switch mode &^ 0o7777 {
	case 0o040000:
		return TypeTree
	case 0o160000:
		return TypeCommit
	}
	return TypeBlob
}

// modeText formats a mode. Common modes need no allocation.
func modeText(mode uint64) string {
	switch mode {
	case 0o100644:
		return "100644"
	case 0o040000:
		return "040000"
	case 0o100755:
		return "100755"
	case 0o120000:
		return "120000"
	case 0o160000:
		return "160000"
	}
	s := strconv.FormatUint(mode, 8)
	return strings.Repeat("0", max(0, 6-len(s))) + s
}

// Signature is an author, committer or tagger with a time in their time zone.
type Signature struct {
	Name  string
	Email string
	When  time.Time
}

// Commit is a commit. Its texts are converted to valid UTF-8.
type Commit struct {
	ID        OID
	TreeID    OID
	ParentIDs []OID
	Author    Signature
	Committer Signature
	Message   string
	Title     string // subject line of the message
	Signed    bool   // the commit has a signature, which has not been verified
}

// ParseCommit parses the content of a commit. Like git, it tolerates malformed
// headers; the fields are left empty.
func ParseCommit(id OID, content []byte) (*Commit, error) {
	c := &Commit{ID: id}
	head, message := splitHead(content)
	charset := ""
	var author, committer []byte
	for key, value := range headers(head) {
		switch key {
		case "tree":
			if c.TreeID == "" {
				c.TreeID, _ = refstore.ParseOID(string(value))
			}
		case "parent":
			if p, ok := refstore.ParseOID(string(value)); ok {
				c.ParentIDs = append(c.ParentIDs, p)
			}
		case "author":
			if author == nil {
				author = value
			}
		case "committer":
			if committer == nil {
				committer = value
			}
		case "encoding":
			charset = string(value)
		case "gpgsig":
			c.Signed = true
		}
	}
	if c.TreeID == "" {
		return nil, ErrMalformed
	}
	c.Author = parseSignature(author, charset)
	c.Committer = parseSignature(committer, charset)
	c.Message = Decode(message, charset)
	c.Title = title(c.Message)
	return c, nil
}

// Tag is an annotated tag. Its texts are converted to valid UTF-8.
type Tag struct {
	ID         OID
	Name       string
	Target     OID
	TargetType Type
	Tagger     Signature // missing in some old tags
	Message    string    // without the signature
	Signature  string    // not verified
}

// ParseTag parses the content of an annotated tag.
func ParseTag(id OID, content []byte) (*Tag, error) {
	t := &Tag{ID: id}
	head, message := splitHead(content)
	for key, value := range headers(head) {
		switch key {
		case "object":
			t.Target, _ = refstore.ParseOID(string(value))
		case "type":
			t.TargetType = Type(Decode(value, ""))
		case "tag":
			t.Name = Decode(value, "")
		case "tagger":
			t.Tagger = parseSignature(value, "")
		}
	}
	if t.Target == "" {
		return nil, ErrMalformed
	}
	at := signatureAt(message)
	t.Message, t.Signature = Decode(message[:at], ""), Decode(message[at:], "")
	return t, nil
}

func splitHead(content []byte) (head, message []byte) {
	if bytes.HasPrefix(content, []byte("\n")) {
		return nil, content[1:]
	}
	head, message, _ = bytes.Cut(content, []byte("\n\n"))
	return head, message
}

// headers iterates over the headers of a commit or tag. For multi-line headers,
// such as signatures, it returns the first line.
func headers(head []byte) func(yield func(string, []byte) bool) {
	return func(yield func(string, []byte) bool) {
		for line := range bytes.SplitSeq(head, []byte("\n")) {
			key, value, ok := bytes.Cut(line, []byte(" "))
			if ok && len(key) > 0 && !yield(string(key), value) {
				return
			}
		}
	}
}

// parseSignature parses "Name <email> seconds zone". Malformed lines of old tools
// are parsed as far as possible.
func parseSignature(line []byte, charset string) Signature {
	var s Signature
	open := bytes.IndexByte(line, '<')
	if open < 0 {
		s.Name = Decode(bytes.TrimSpace(line), charset)
		return s
	}
	s.Name = Decode(bytes.TrimSpace(line[:open]), charset)
	end := bytes.IndexByte(line[open:], '>')
	if end < 0 {
		s.Email = Decode(bytes.TrimSpace(line[open+1:]), charset)
		return s
	}
	s.Email = Decode(bytes.TrimSpace(line[open+1:open+end]), charset)
	// As in git, the time follows the last bracket.
	fields := bytes.Fields(line[bytes.LastIndexByte(line, '>')+1:])
	if len(fields) == 0 {
		return s
	}
	seconds, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil || seconds > math.MaxInt32*100 || seconds < 0 {
		return s // out of range: leave the time empty
	}
	zone := time.UTC
	if len(fields) > 1 {
		zone = parseZone(string(fields[1]))
	}
	s.When = time.Unix(seconds, 0).In(zone)
	return s
}

func parseZone(text string) *time.Location {
	n, err := strconv.Atoi(text)
	if err != nil || len(text) != 5 || n == 0 || n < -2400 || n > 2400 || n%100 >= 60 || n%100 <= -60 {
		return time.UTC
	}
	return time.FixedZone("", (n/100*60+n%100)*60)
}

// title returns the subject of a message like git log --oneline: the first
// paragraph, joined to one line.
func title(message string) string {
	message = strings.TrimLeft(message, "\n")
	first, _, _ := strings.Cut(message, "\n\n")
	return strings.TrimSpace(strings.ReplaceAll(first, "\n", " "))
}

// Decode converts text to valid UTF-8. If the charset is unknown or wrong, invalid
// bytes are replaced.
func Decode(b []byte, charset string) string {
	if charset == "" && utf8.Valid(b) {
		return string(b)
	}
	if charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		if enc, err := htmlindex.Get(charset); err == nil {
			if out, err := enc.NewDecoder().Bytes(b); err == nil {
				return strings.ToValidUTF8(string(out), "\uFFFD")
			}
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
