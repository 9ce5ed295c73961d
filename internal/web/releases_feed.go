package web

import (
	"encoding/xml"
	"time"

	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/release"
)

// atomFeed is a feed in the Atom format.
type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	Title   string      `xml:"title"`
	Links   []atomLink  `xml:"link"`
	ID      string      `xml:"id"`
	Updated string      `xml:"updated"`
	Entries []atomEntry `xml:"entry"`
}

type atomLink struct {
	Href string `xml:"href,attr"`
	Rel  string `xml:"rel,attr,omitempty"`
	Type string `xml:"type,attr,omitempty"`
}

type atomEntry struct {
	ID        string      `xml:"id"`
	Link      atomLink    `xml:"link"`
	Title     string      `xml:"title"`
	Summary   string      `xml:"summary"`
	Published string      `xml:"published"`
	Updated   string      `xml:"updated"`
	Author    *atomAuthor `xml:"author"`
	Content   atomText    `xml:"content"`
}

type atomAuthor struct {
	Name string `xml:"name"`
}

type atomText struct {
	Type string `xml:"type,attr"`
	HTML string `xml:",chardata"`
}

// feedEntries is the number of releases in a feed.
const feedEntries = 20

// releaseFeed is the releases of a project as an Atom feed.
func (w *Web) releaseFeed(v *visit, ref project.Ref) error {
	p, page, err := w.Releases.List(v, v.actor, ref, release.Filter{}, db.Paging{Limit: feedEntries})
	if err != nil {
		return err
	}
	views, err := w.releaseViews(v, p, page.Items)
	if err != nil {
		return err
	}
	at := w.Site.URL + pathTo(p.FullPath) + "/-/releases"
	feed := atomFeed{
		Title: p.FullName() + " releases", ID: at, Updated: p.CreatedAt.UTC().Format(time.RFC3339),
		Links: []atomLink{{Href: at + ".atom", Rel: "self", Type: "application/atom+xml"}, {Href: at, Rel: "alternate", Type: "text/html"}},
	}
	for i, r := range views {
		if i == 0 {
			feed.Updated = r.ReleasedAt.UTC().Format(time.RFC3339)
		}
		feed.Entries = append(feed.Entries, w.feedEntry(at, r))
	}
	out, err := xml.MarshalIndent(feed, "", "  ")
	if err != nil {
		return err
	}
	foreign(v.w.Header(), "application/atom+xml; charset=utf-8", "private, no-cache")
	_, _ = v.w.Write(append([]byte(xml.Header), out...))
	return nil
}

func (w *Web) feedEntry(at string, r releaseView) atomEntry {
	e := atomEntry{
		ID: at, Link: atomLink{Href: at, Rel: "alternate", Type: "text/html"}, Title: r.DisplayName(), Published: r.ReleasedAt.UTC().Format(time.RFC3339),
		Updated: r.UpdatedAt.UTC().Format(time.RFC3339), Content: atomText{"html", string(r.Text)},
	}
	if r.Code {
		e.ID, e.Summary = w.Site.URL+r.Page, r.Tag
		e.Link.Href = e.ID
	} else {
		e.ID += "#" + r.DisplayName()
	}
	if r.Author != nil {
		e.Author = &atomAuthor{r.Author.Name}
	}
	return e
}
