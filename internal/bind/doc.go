// Package bind reads the parameters of HTTP requests into structs.
//
// A parameters struct declares its parameters with tags (see Field). NewLayout reads
// the struct once. ReadInput reads the path, query and body of a request, in any
// supported format (query string, form, multipart, JSON). Layout.Bind converts and
// checks the values and reports all errors at once, with the texts of the public
// API. Work and memory are limited for each request.
//
// The package exists because no library implements the rules of GitLab for all three
// body formats: the difference between absent, null and empty, brackets for lists
// and hashes, aliases, and the error texts.
package bind
