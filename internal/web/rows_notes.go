package web

import (
	"html/template"
	"strconv"
)

// token writes the CSRF field of a form.
func (m *markupWriter) token(f *frame) { m.csrf(f.Token()) }

func (m *markupWriter) csrf(token string) {
	m.raw(`<input type="hidden" name="authenticity_token" value="`)
	m.text(token)
	m.raw(`">`)
}

// drawThreads draws discussions in their order. Those with replies and pending
// comments are few, so templates draw them.
func (w *Web) drawThreads(f *frame, on discussions) (template.HTML, error) {
	m := &markupWriter{web: w}
	size := 0
	for _, t := range on.Threads {
		size += noteSize + len(t.Notes[0].Text)
	}
	m.Grow(size)
	for _, t := range on.Threads {
		first := t.Notes[0]
		if first.System != "" {
			m.system(first)
			continue
		}
		m.raw(`<li class="thread`)
		if t.Settled != nil {
			m.raw(` settled`)
		}
		m.raw(`">`)
		if t.Together {
			html, err := w.part(f.Page.view(), "thread", pair{f, pair{on, t}})
			if err != nil {
				return "", err
			}
			m.raw(html, `</li>`)
			continue
		}
		m.raw(`<div class="panel">`)
		m.note(f, on, first)
		if on.May {
			m.reply(f, on, t.ID)
		}
		for _, d := range t.Drafts {
			html, err := w.part(f.Page.view(), "draft", pair{f, d})
			if err != nil {
				return "", err
			}
			m.raw(html)
		}
		m.raw(`</div></li>`)
	}
	return m.html(), nil
}

// system draws a system note.
func (m *markupWriter) system(n noteView) {
	m.raw(`<li class="sys" id="note_`)
	m.number(n.ID)
	m.raw(`"><span class="sys-icon">`, m.web.icon("info"), `</span><div>`)
	if by := n.Author; by != nil {
		m.raw(`<a href="/`)
		m.text(by.Username)
		m.raw(`">`)
		m.text(by.Name)
		m.raw(`</a>`)
	}
	m.raw(` `, n.Text, ` <span class="muted">· <a href="#note_`)
	m.number(n.ID)
	m.raw(`">`, m.web.since(n.CreatedAt), `</a></span></div></li>`)
}

// drawNote draws a comment of discussions.
func (w *Web) drawNote(f *frame, on discussions, n noteView) template.HTML {
	m := &markupWriter{web: w}
	m.Grow(noteSize + len(n.Text))
	m.note(f, on, n)
	return m.html()
}

// noteSize is about how many bytes a comment has beside its text.
const noteSize = 3 << 10

func (m *markupWriter) note(f *frame, on discussions, n noteView) {
	w := m.web
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
}

// drawReactions draws the reactions to an object.
func (w *Web) drawReactions(f *frame, r reactions) template.HTML {
	m := &markupWriter{web: w}
	m.reactions(f, r)
	return m.html()
}

func (m *markupWriter) reactions(f *frame, r reactions) {
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

// reply draws the form of a reply to a discussion with a single comment, which is
// folded.
func (m *markupWriter) reply(f *frame, on discussions, id string) {
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
		m.raw(`<button class="button slim" name="review" value="1">`, m.web.icon("pen"), ` `)
		m.text(on.Review)
		m.raw(`</button>`)
		label = "Add comment now"
	}
	m.raw(`<button class="button slim">`, label, `</button></div></form></details>`)
}
