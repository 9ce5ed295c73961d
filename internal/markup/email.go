package markup

import (
	"context"
	"errors"
	"html"
	"regexp"
	"strings"
)

// EmailHTML adapts HTML that was rendered from Markdown to emails: paths become
// URLs below the external URL, and images become links, so that opening the
// email makes no requests.
func EmailHTML(safe, site string) string {
	var out strings.Builder
	linked := 0 // links cannot be nested
	for safe != "" {
		if safe[0] != '<' {
			end := strings.IndexByte(safe, '<')
			if end < 0 {
				end = len(safe)
			}
			out.WriteString(safe[:end])
			safe = safe[end:]
			continue
		}
		end := strings.IndexByte(safe, '>') + 1
		if end == 0 {
			end = len(safe)
		}
		tag := safe[:end]
		safe = safe[end:]
		switch {
		case strings.HasPrefix(tag, "<img"):
			out.WriteString(picture(tag, site, linked > 0))
		case strings.HasPrefix(tag, "<input"):
			out.WriteString(box(tag))
		case strings.HasPrefix(tag, "<svg"): // the color of a label
			if _, rest, ok := strings.Cut(safe, "</svg>"); ok {
				safe = rest
			}
		default:
			if strings.HasPrefix(tag, "<a ") {
				linked++
			} else if tag == "</a>" && linked > 0 {
				linked--
			}
			out.WriteString(whole(plainTag.ReplaceAllString(tag, ""), site))
		}
	}
	return out.String()
}

var (
	// plainTag matches attributes that have no meaning in an email.
	plainTag = regexp.MustCompile(` (class|id|tabindex|target)="[^"]*"`)
	source   = regexp.MustCompile(` src="([^"]*)"`)
	caption  = regexp.MustCompile(` alt="([^"]*)"`)
	ownPath  = regexp.MustCompile(` (href|cite)="/([^"]*)"`)
)

func attribute(tag string, of *regexp.Regexp) string {
	if found := of.FindStringSubmatch(tag); found != nil {
		return found[1]
	}
	return ""
}

// picture returns a link to an image, with its alternative text as the link text.
func picture(tag, site string, linked bool) string {
	name := attribute(tag, caption)
	if name == "" {
		name = "picture"
	}
	if linked {
		return name
	}
	return whole(`<a href="`+attribute(tag, source)+`" rel="nofollow noreferrer">`, site) + name + "</a>"
}

func box(tag string) string {
	if strings.Contains(tag, "checked") {
		return "[x]"
	}
	return "[ ]"
}

// whole makes paths in a tag absolute URLs.
func whole(tag, site string) string {
	return ownPath.ReplaceAllStringFunc(tag, func(found string) string {
		part := ownPath.FindStringSubmatch(found)
		if strings.HasPrefix(part[2], "/") { // another host
			return found
		}
		return ` ` + part[1] + `="` + html.EscapeString(site) + `/` + part[2] + `"`
	})
}

// Mentions returns the names of the users and groups that a text mentions, in
// order, except in code. A text that is too expensive to render has no mentions.
func Mentions(ctx context.Context, source string) ([]string, error) {
	if !strings.Contains(source, "@") {
		return nil, nil
	}
	refs, err := References(ctx, source)
	var names []string
	for _, ref := range refs {
		if ref.Kind == User {
			names = append(names, ref.Name)
		}
	}
	return names, err
}

// References returns the references of a text, in order, except in code. A text
// that is too expensive to render has none.
func References(ctx context.Context, source string) ([]Reference, error) {
	var safe string
	_, err := spending(ctx, scanLimits, func(b *budget) (err error) {
		safe, err = markdown(b, source, style{})
		return err
	})
	if errors.Is(err, errCostly) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var found []Reference
	_, err = refer(safe, func(refs []Reference) (map[Reference]Target, error) {
		found = refs
		return nil, nil
	})
	return found, err
}
