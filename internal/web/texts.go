package web

import (
	"html/template"
	"sync"

	"svc/internal/git"
)

// rendering is a text at a place, by the id of its content: what comes out of
// it never changes.
type rendering struct {
	at   spot
	name string
	id   git.OID
}

// texts keeps what has been rendered, up to a number of bytes. It holds
// nothing that needs to be asked for again: who may see a text is asked before
// its id is known.
type texts struct {
	mu    sync.Mutex
	known map[rendering]template.HTML
	size  int
}

// maxTexts is how many bytes are kept.
const maxTexts = 32 << 20

func newTexts() *texts { return &texts{known: map[rendering]template.HTML{}} }

func (t *texts) get(key rendering) (template.HTML, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	html, ok := t.known[key]
	return html, ok
}

// put keeps a text. When there is no room all are dropped: those in use come
// back at once.
func (t *texts) put(key rendering, html template.HTML) {
	size := len(html) + len(key.at.project) + len(key.at.ref) + len(key.at.dir) + len(key.name) + 200
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.size+size > maxTexts {
		clear(t.known)
		t.size = 0
	}
	if _, ok := t.known[key]; !ok {
		t.size += size
	}
	t.known[key] = html
}
