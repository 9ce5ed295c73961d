package markup

import (
	"context"
	"html"
	"regexp"
	"strings"
)

// show replaces the URLs of images with those from which they are loaded. The result
// is not cached because it depends on settings.
func (r *Renderer) show(ctx context.Context, safe string) (string, error) {
	if r.images == nil || !strings.Contains(safe, "<img") {
		return safe, nil
	}
	lead, err := r.images(ctx)
	if err != nil {
		return "", err
	}
	linked := 0 // links cannot be nested
	return image.ReplaceAllStringFunc(safe, func(tag string) string {
		switch {
		case tag == "</a>":
			linked--
			return tag
		case !strings.HasPrefix(tag, "<img"):
			linked++
			return tag
		}
		address := html.UnescapeString(attribute(tag, source))
		to := lead(address)
		if to == "" {
			return picture(tag, "", linked > 0)
		}
		more := ` loading="lazy">`
		if to != address { // the original URL is kept for programs that read the HTML
			tag = source.ReplaceAllLiteralString(tag, ` src="`+html.EscapeString(to)+`"`)
			more = ` data-canonical-src="` + html.EscapeString(address) + `"` + more
		}
		return strings.TrimRight(tag, " />") + more
	}), nil
}

// image matches images and the start and end tags of links in sanitized HTML.
var image = regexp.MustCompile(`<img [^>]*>|<a [^>]*>|</a>`)

// relative rewrites the URLs of links and images in HTML that is part of a text,
// before it is sanitized.
func relative(text string, link func(to string, image bool) string) string {
	return written.ReplaceAllStringFunc(text, func(tag string) string {
		part := written.FindStringSubmatch(tag)
		to := html.UnescapeString(part[3][1 : len(part[3])-1])
		return part[1] + `"` + html.EscapeString(link(to, strings.EqualFold(part[2], "img"))) + `"`
	})
}

// written matches the tag of a link or an image up to its quoted URL.
var written = regexp.MustCompile(`(?i)(<(a|img)\s(?:[^<>"']|"[^"]*"|'[^']*')*?\s?(?:href|src)\s*=\s*)("[^"<>]*"|'[^'<>]*')`)
