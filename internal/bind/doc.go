// Package bind reads the parameters of HTTP requests into structs.
//
// A parameters struct declares its parameters with tags (see Field). NewLayout
// reads the struct once; ReadInput reads what a request sent in its path, query
// and body, in whatever form it was sent (query string, form, multipart, JSON);
// Layout.Bind converts and checks the values and reports every fault at once, in
// the words of the public API. Work and memory are bounded for each request.
//
// The package exists because no library has the reference's rules for all three
// forms of a body: the difference between absent, null and empty, brackets for
// lists and hashes, aliases, and its error texts.
package bind
