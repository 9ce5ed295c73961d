package web

import (
	"html/template"
	"sync"

	"svc/internal/git"
	"svc/internal/lru"
)

// rendering identifies a rendered text by its location and the ID of its
// content. It never changes.
type rendering struct {
	at   spot
	name string
	id   git.OID
}

// texts caches rendered texts up to a number of bytes. Access to a text is
// checked before its ID is known, so the cache needs no check.
type texts struct {
	mu    sync.Mutex
	known *lru.Map[rendering, template.HTML]
}

// maxTexts is the maximum size of the cache in bytes.
const maxTexts = 32 << 20

func newTexts() *texts { return &texts{known: lru.New[rendering, template.HTML](maxTexts, nil)} }

func (t *texts) get(key rendering) (template.HTML, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known.Get(key)
}

// put adds a text to the cache.
func (t *texts) put(key rendering, html template.HTML) {
	size := len(html) + len(key.at.project) + len(key.at.ref) + len(key.at.dir) + len(key.name) + 200
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known.Put(key, html, size)
}
