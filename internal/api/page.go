package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"svc/internal/bind"
	"svc/internal/db"
	"svc/internal/errs"
)

const (
	maxPerPage = 100
	// maxOffset is the largest offset of lists that also support keyset
	// pagination.
	maxOffset = 50_000
)

// pageParams are embedded by every list.
type pageParams struct {
	Page    int64 `param:"page" default:"1" doc:"Page number."`
	PerPage int64 `param:"per_page" default:"20" doc:"Items per page, at most 100."`
}

func (p *pageParams) check() error {
	var wrong []string
	if p.Page < 1 {
		wrong = append(wrong, "page does not have a valid value")
	}
	switch {
	case p.PerPage == 0:
		wrong = append(wrong, "per_page has a value not allowed")
	case p.PerPage < 0:
		wrong = append(wrong, "per_page does not have a valid value")
	}
	if len(wrong) > 0 {
		return bind.Invalid(wrong...)
	}
	p.PerPage = min(p.PerPage, maxPerPage)
	return nil
}

func (p *pageParams) paging() db.Paging {
	offset := int64(math.MaxInt64)
	if p.Page-1 <= math.MaxInt64/maxPerPage {
		offset = (p.Page - 1) * p.PerPage
	}
	return db.Paging{Limit: int(p.PerPage), Offset: int(offset), Totals: true}
}

// keysetParams are embedded by lists that also support keyset pagination.
type keysetParams struct {
	pageParams
	Pagination string `param:"pagination" enum:"keyset,offset,legacy" doc:"Set to keyset for keyset pagination."`
	Cursor     string `param:"cursor" doc:"Cursor of a keyset page, from the Link header."`
}

// keyset describes the keyset pagination of a list, for one request.
type keyset struct {
	object  string   // the type of the items, for error messages
	columns []string // the sort columns by name, the unique one last
	allowed bool     // whether the requested order supports keyset pagination
}

// paging returns the pagination of a request. NotAllowed if the offset is too large
// or the list does not support keyset pagination; Invalid if the cursor is invalid.
func (p *keysetParams) paging(k keyset) (db.Paging, error) {
	if p.Pagination != "keyset" {
		paging := p.pageParams.paging()
		if paging.Offset > maxOffset {
			return paging, errs.NotAllowed("Offset pagination has a maximum allowed offset of %d for requests that return objects of type %s. "+
				"Remaining records can be retrieved using keyset pagination.", maxOffset, k.object)
		}
		return paging, nil
	}
	if !k.allowed {
		return db.Paging{}, errs.NotAllowed("Keyset pagination is not yet available for this type of request")
	}
	paging := db.Paging{Limit: int(p.PerPage), Keyset: true}
	if p.Cursor != "" {
		after, err := readCursor(p.Cursor, k.columns)
		if err != nil {
			return paging, bind.Invalid("cursor is invalid")
		}
		paging.After = after
	}
	return paging, nil
}

// page is one page of a list.
type page[T any] struct {
	items   []T
	encoded encoded // instead of the items
	head    func(c *call)
}

func (p page[T]) page(c *call) any {
	p.head(c)
	if p.encoded != nil {
		return p.encoded
	}
	return p.items
}

// offsetPage returns a page of a list with offset pagination only.
func offsetPage[F, T any](p pageParams, list db.Page[F], to func(F) T) page[T] {
	return page[T]{items: mapped(list.Items, to), head: offsetHead(p, list)}
}

// offsetList returns a function that turns the result of a list operation into a
// page: offsetList(p, toLabel)(a.Plan.Labels(…)).
func offsetList[F, T any](p pageParams, to func(F) T) func(db.Page[F], error) (page[T], error) {
	return func(list db.Page[F], err error) (page[T], error) {
		if err != nil {
			return page[T]{}, err
		}
		return offsetPage(p, list, to), nil
	}
}

// presentAs returns a function that turns the result of an operation into JSON:
// presentAs(toLabel)(a.Plan.Label(…)).
func presentAs[F, T any](to func(F) T) func(F, error) (T, error) {
	return func(value F, err error) (T, error) {
		if err != nil {
			var none T
			return none, err
		}
		return to(value), nil
	}
}

// offsetHead returns a function that writes the headers of a page. The function does
// not reference the items, because their memory is released while they are written.
func offsetHead[F any](p pageParams, list db.Page[F]) func(c *call) {
	more, over, total := list.More, list.Over, list.Total
	return func(c *call) { writeOffset(c, p, more, over, total) }
}

// keysetPage returns a page of a list that supports keyset pagination.
func keysetPage[F, T any](p keysetParams, k keyset, list db.Page[F], to func(F) T) page[T] {
	if p.Pagination != "keyset" {
		return offsetPage(p.pageParams, list, to)
	}
	more, last := list.More, list.Last
	return page[T]{items: mapped(list.Items, to), head: func(c *call) {
		if more {
			query := c.pageQuery()
			query.Set("cursor", writeCursor(k.columns, last))
			query.Set("per_page", strconv.FormatInt(p.PerPage, 10))
			c.w.Header().Set("Link", "<"+c.pageURL(query)+`>; rel="next"`)
		}
	}}
}

// offsetPageWhile is offsetPage for items that take time to convert: it stops
// when ctx ends.
func offsetPageWhile[F, T any](ctx context.Context, p pageParams, list db.Page[F], to func(F) T) (page[T], error) {
	items, err := mappedWhile(ctx, list.Items, to)
	if err != nil {
		return page[T]{}, err
	}
	return page[T]{items: items, head: offsetHead(p, list)}, nil
}

// mappedWhile is mapped for items that take time to convert: it stops when ctx
// ends.
func mappedWhile[F, T any](ctx context.Context, items []F, to func(F) T) ([]T, error) {
	list := make([]T, len(items))
	for i, item := range items {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list[i] = to(item)
	}
	return list, nil
}

func mapped[F, T any](items []F, to func(F) T) []T {
	list := make([]T, len(items))
	for i, item := range items {
		list[i] = to(item)
	}
	return list
}

func writeOffset(c *call, p pageParams, more, over bool, total int) {
	h := c.w.Header()
	perPage := strconv.FormatInt(p.PerPage, 10)
	query := c.pageQuery()
	query.Set("per_page", perPage)
	before, after := c.pageLinks(query)
	links := make([]byte, 0, 4*(len(before)+len(after)+32))
	link := func(rel string, n int64) {
		if len(links) > 0 {
			links = append(links, ", "...)
		}
		links = append(append(links, '<'), before...)
		links = append(strconv.AppendInt(links, n, 10), after...)
		links = append(append(append(links, `>; rel="`...), rel...), '"')
	}
	next, prev := "", ""
	if p.Page > 1 {
		prev = strconv.FormatInt(p.Page-1, 10)
		link("prev", p.Page-1)
	}
	if more {
		next = strconv.FormatInt(p.Page+1, 10)
		link("next", p.Page+1)
	}
	link("first", 1)
	h.Set("X-Page", strconv.FormatInt(p.Page, 10))
	h.Set("X-Per-Page", perPage)
	h.Set("X-Next-Page", next)
	h.Set("X-Prev-Page", prev)
	if !over {
		pages := (int64(total) + p.PerPage - 1) / p.PerPage
		link("last", max(pages, 1))
		h.Set("X-Total", strconv.Itoa(total))
		h.Set("X-Total-Pages", strconv.FormatInt(max(pages, 1), 10))
	}
	h.Set("Link", string(links))
}

// pageLinks returns the URL of this request with another query, split at the page
// number.
func (c *call) pageLinks(query url.Values) (before, after string) {
	// An encoded query has no other & or ?, so the marker is unique.
	const mark = "page=%00"
	query.Set("page", "\x00")
	address := c.pageURL(query)
	for _, sign := range []string{"&", "?"} {
		if i := strings.LastIndex(address, sign+mark); i >= 0 {
			return address[:i+len(sign)+len("page=")], address[i+len(sign)+len(mark):]
		}
	}
	return address, "" // unreachable: the marker was just written
}

// secretParams are removed from links.
var secretParams = []string{"private_token", "access_token", "job_token"}

// pageQuery returns the query of this request without credentials, so that links to
// other pages keep all filters.
func (c *call) pageQuery() url.Values {
	q := c.r.URL.Query()
	for _, name := range secretParams {
		delete(q, name)
	}
	return q
}

// pageURL returns the URL of this request with another query.
func (c *call) pageURL(query url.Values) string {
	return c.site.URL + c.r.URL.EscapedPath() + "?" + query.Encode()
}

// writeCursor returns the cursor of the last row: the values of its sort columns by
// name, as JSON in base64. Cursors are opaque to clients.
func writeCursor(columns []string, values []any) string {
	m := make(map[string]any, len(columns)+1)
	for i, name := range columns {
		m[name] = values[i]
	}
	m["_kd"] = "n"
	text, _ := json.Marshal(m) // strings and integers always encode
	return base64.RawURLEncoding.EncodeToString(text)
}

func readCursor(cursor string, columns []string) ([]any, error) {
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(cursor, "="))
	if err != nil {
		return nil, err
	}
	var m map[string]any
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		return nil, err
	}
	values := make([]any, len(columns))
	for i, name := range columns {
		switch v := m[name].(type) {
		case string:
			if !bind.Clean(v) {
				return nil, fmt.Errorf("cursor: %s is not text", name)
			}
			values[i] = v
		case json.Number:
			n, err := v.Int64()
			if err != nil {
				return nil, err
			}
			values[i] = n
		default:
			return nil, fmt.Errorf("cursor: no value for %s", name)
		}
	}
	return values, nil
}

// deprecated marks a response as deprecated since a time in Unix seconds.
func deprecated(h http.Header, since int64) {
	h.Set("Deprecation", "@"+strconv.FormatInt(since, 10))
}
