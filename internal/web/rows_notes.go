package web

import (
	"html/template"
	"strconv"
)

// token writes the CSRF field of a form.
func (m *markupWriter) token(f frame) {
	m.raw(`<input type="hidden" name="authenticity_token" value="`)
	m.text(f.Token())
	m.raw(`">`)
}

// drawNote draws a comment of discussions.
func (w *Web) drawNote(f frame, on discussions, n noteView) template.HTML {
	m := &markupWriter{web: w}
	m.Grow(2<<10 + len(n.Text))
	id := strconv.FormatInt(n.ID, 10)
	m.raw(`<article class="said`)
	if n.Internal {
		m.raw(` internal`)
	}
	m.raw(`" id="note_`)
	m.text(id)
	m.raw(`"><header>`)
	if by := n.Author; by != nil {
		m.raw(drawFace(faceSize("tiny round-face", userFace(by))), `<a class="name" href="/`)
		m.text(by.Username)
		m.raw(`">`)
		m.text(by.Name)
		m.raw(`</a> <span class="muted small wide-only">@`)
		m.text(by.Username)
		m.raw(`</span>`)
	}
	m.raw(` <a class="muted small" href="#note_`)
	m.text(id)
	m.raw(`">`, w.since(n.CreatedAt), `</a>`)
	if n.Internal {
		m.raw(` <span class="badge warn">`, w.icon("hide"), ` Internal</span>`)
	}
	m.raw(` `)
	if n.May {
		m.raw(`<span class="acts"><a class="round" href="`)
		m.text(on.At + "/notes/" + id)
		m.raw(`/edit" title="Edit" aria-label="Edit comment">`, w.icon("pen"), `</a><form method="post" action="`)
		m.text(on.At + "/notes/" + id)
		m.raw(`/delete" data-confirm="Delete this comment?">`)
		m.token(f)
		m.raw(`<button class="round" title="Delete" aria-label="Delete comment">`, w.icon("trash"), `</button></form></span>`)
	}
	m.raw(`</header><div class="prose">`, n.Text, `</div>`)
	m.reactions(f, n.Reactions)
	m.raw(`</article>`)
	return m.html()
}

// drawReactions draws the reactions to an object.
func (w *Web) drawReactions(f frame, r reactions) template.HTML {
	m := &markupWriter{web: w}
	m.reactions(f, r)
	return m.html()
}

func (m *markupWriter) reactions(f frame, r reactions) {
	if len(r.List) == 0 && !r.May {
		return
	}
	m.raw(`<div class="reactions" data-part="`)
	m.text(r.Part)
	m.raw(`">`)
	if r.May {
		m.raw(`<form method="post" action="`)
		m.text(r.Action)
		m.raw(`" data-quiet>`)
		m.token(f)
	}
	for _, one := range r.List {
		count, text := strconv.Itoa(one.Count), r.Text(one)
		if !r.May {
			m.raw(`<span class="react" title="`)
			m.text(text)
			m.raw(`">`)
			m.text(one.Emoji.Text + " " + count)
			m.raw(`<span class="sr"> `)
			m.text(text)
			m.raw(`</span></span>`)
			continue
		}
		m.raw(`<button class="react" name="name" value="`)
		m.text(one.Emoji.Name)
		m.raw(`" aria-pressed="`)
		m.text(strconv.FormatBool(one.Own))
		m.raw(`" title="`)
		m.text(text)
		m.raw(`">`)
		m.text(one.Emoji.Text)
		m.raw(` <span>`)
		m.text(count)
		m.raw(`</span><span class="sr"> `)
		m.text(text)
		m.raw(`</span></button>`)
	}
	if r.May {
		m.raw(`</form><a class="react" href="`)
		m.text(r.Action)
		m.raw(`" data-react title="Add reaction" aria-label="Add reaction">`, m.web.icon("smile"), `</a>`)
	}
	m.raw(`</div>`)
}

// drawReply draws the form of a reply to a discussion with a single comment, which is
// folded.
func (w *Web) drawReply(f frame, on discussions, id string) template.HTML {
	m := &markupWriter{web: w}
	m.raw(`<details class="more reply-later"><summary>Reply</summary><form method="post" action="`)
	m.text(on.At + "/discussions/" + id)
	m.raw(`">`)
	m.token(f)
	m.raw(`<div class="editor" data-editor="`)
	m.text(on.Base)
	m.raw(`" data-uploads data-later><textarea name="note" rows="2" required maxlength="1048576" placeholder="Reply" aria-label="Reply"></textarea>`,
		`<div class="prose preview" data-preview hidden></div></div><div class="row">`)
	label := template.HTML("Reply")
	if on.Review != "" {
		m.raw(`<button class="button slim" name="review" value="1">`, w.icon("pen"), ` `)
		m.text(on.Review)
		m.raw(`</button>`)
		label = "Add comment now"
	}
	m.raw(`<button class="button slim">`, label, `</button></div></form></details>`)
	return m.html()
}
