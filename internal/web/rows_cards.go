package web

import (
	"html/template"
	"strconv"
)

// drawCards draws the cards of a column of a board.
func (w *Web) drawCards(c columnView) template.HTML {
	m := &markupWriter{web: w}
	m.Grow(1 << 10 * (len(c.Cards) + 1))
	for _, r := range c.Cards {
		id := strconv.FormatInt(r.ID, 10)
		m.raw(`<li class="ticket" data-card="`)
		m.text(id)
		m.raw(`"`)
		if c.Plans {
			m.raw(` draggable="true"`)
		}
		m.raw(`><a class="name" href="`)
		m.text(r.Path)
		m.raw(`">`)
		m.text(r.Title)
		m.raw(`</a>`)
		if len(r.Labels) > 0 {
			m.raw(`<p class="wraps">`)
			for _, l := range r.Labels {
				m.raw(chip(l))
			}
			m.raw(`</p>`)
		}
		m.raw(`<p class="muted small wraps">`)
		if r.Confidential {
			m.raw(`<span title="Confidential">`, w.icon("hide"), `<span class="sr">Confidential</span></span>`)
		}
		m.raw(`<span>`)
		m.text(r.Ref)
		m.raw(`</span>`)
		if r.DueDate != "" {
			m.raw(`<span`)
			if r.Late {
				m.raw(` class="late"`)
			}
			m.raw(` title="Due date">`)
			m.text(r.DueDate)
			m.raw(`</span>`)
		}
		for _, u := range r.Assignees {
			m.raw(`<span title="`)
			m.text(u.Name)
			m.raw(`">`, drawFace(faceSize("mini-face round-face", userFace(u))), `<span class="sr">`)
			m.text(u.Name)
			m.raw(`</span></span>`)
		}
		if c.Plans {
			m.raw(`<a class="move" href="`)
			m.text(c.Base + "/cards/" + id + "?from=" + c.Key)
			m.raw(`" data-sheet aria-label="Move `)
			m.text(r.Ref)
			m.raw(`">Move</a>`)
		}
		m.raw(`</p></li>`)
	}
	return m.html()
}
