package web

import (
	"html/template"
	"sync"

	"svc/internal/git"
	"svc/internal/lru"
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
	known *lru.Map[rendering, template.HTML]
}

// maxTexts is how many bytes are kept.
const maxTexts = 32 << 20

func newTexts() *texts { return &texts{known: lru.New[rendering, template.HTML](maxTexts, nil)} }

func (t *texts) get(key rendering) (template.HTML, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known.Get(key)
}

// put keeps a text.
func (t *texts) put(key rendering, html template.HTML) {
	size := len(html) + len(key.at.project) + len(key.at.ref) + len(key.at.dir) + len(key.name) + 200
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known.Put(key, html, size)
}
