package web

import (
	"fmt"
	"strings"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// codePages adds the pages of the code.
func (w *Web) codePages() {
	w.treePages()
	w.blobPages()
	w.editPages()
	w.commitPages()
	w.branchPages()
	w.tagPages()
	w.comparePages()
	w.contributorPages()
	w.archivePages()
	w.patchPages()
	w.forkPages()
	w.refPages()
}

// codeHead has the common data of the pages of a path in a revision.
type codeHead struct {
	head
	Ref   string // as the URL names it
	Path  string
	Steps []crumb // of the path
	At    git.OID // the commit of Ref; empty for the default branch
}

func (w *Web) codeHead(v *visit, ref project.Ref, tab string) (codeHead, error) {
	h, err := w.head(v, ref, tab)
	if err != nil {
		return codeHead{}, err
	}
	p := codeHead{head: h}
	if p.Ref, p.Path, p.At, err = w.split(v, p.in(), v.rest()); err != nil {
		return codeHead{}, err
	}
	p.Steps = steps(p.Path)
	return p, nil
}

// in returns a reference to the project by its ID, which does not change.
func (h head) in() project.Ref { return project.RefTo(h.Project.ID) }

// name returns the path and the revision, for titles.
func (h codeHead) name() string { return strings.TrimPrefix(h.Path+" at "+h.Ref, " at ") }

// split separates the name of a branch, tag or commit from the path after it;
// both can contain slashes. Git cannot have a branch a beside a branch a/b, so
// the shortest existing name is the right one. Only for abbreviated commit IDs
// is a longer name preferred: a branch named be/an wins over a commit be.
func (w *Web) split(v *visit, ref project.Ref, text string) (rev, at string, id git.OID, err error) {
	parts := strings.Split(strings.Trim(text, "/"), "/")
	if parts[0] == "" {
		return "", "", "", errs.NotFound("")
	}
	err = errs.NotFound("")
	for n := 1; n <= min(len(parts), 8); n++ {
		name := strings.Join(parts[:n], "/")
		_, c, missing := w.Repos.Commit(v, v.actor, ref, name, false)
		if errs.Is(missing, errs.KindNotFound) || errs.Is(missing, errs.KindInvalid) {
			continue
		}
		if missing != nil {
			return "", "", "", missing
		}
		rev, at, id, err = name, strings.Join(parts[n:], "/"), c.ID, nil
		if _, full := git.ParseOID(name); full || !strings.HasPrefix(string(id), strings.ToLower(name)) {
			break
		}
	}
	return rev, at, id, err
}

// shown makes a name or a line safe to show: it spells out characters that are
// invisible or change the direction of the text around them. A line is cut after
// maxLine bytes.
func shown(text string) string {
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "") + "…"
	}
	return spell(text, '\t')
}

// shownText is shown for a text of several lines.
func shownText(text string) string { return spell(text, '\n') }

const (
	maxLine        = 4 << 10   // bytes of a name or a title that are shown
	maxMessage     = 256 << 10 // bytes of a commit message on the page of the commit
	maxMessagePart = 16 << 10  // bytes of a commit message in a list
)

// shownMessage is shownText for the message of a commit or a tag, and
// shownMessagePart for messages in a list. A message that is too long is cut, with a
// remark.
func shownMessage(text string) string     { return cutMessage(text, maxMessage) }
func shownMessagePart(text string) string { return cutMessage(text, maxMessagePart) }

func cutMessage(text string, most int) string {
	if len(text) <= most {
		return shownText(text)
	}
	return fmt.Sprintf("%s…\n\nThe message was truncated. Its size is %d KiB.", shownText(strings.ToValidUTF8(text[:most], "")), (len(text)+1023)>>10)
}

func spell(text string, also rune) string {
	plain := func(r rune) bool { return r >= 0x20 && r < 0x7f || r == '\t' || r == also }
	if !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case plain(r):
			b.WriteRune(r)
		case r < 0x20:
			b.WriteRune(0x2400 + r) // the symbol of the control character
		case r == 0x7f:
			b.WriteRune(0x2421)
		case r >= 0x80 && r < 0xa0, r == 0x61c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff, r == 0x2028, r == 0x2029:
			b.WriteString(spelled(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// spelled returns the code point of a character: "[U+200E]".
func spelled(r rune) string {
	const digits = "0123456789ABCDEF"
	return "[U+" + string([]byte{digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15]}) + "]"
}
