package web

// Routes returns the pages in the route tables, as "GET /path", and whether they
// require a session.
func (w *Web) Routes() map[string]bool {
	all := map[string]bool{}
	for _, p := range w.pages {
		all[p.method+" "+p.path] = p.who == signedIn || p.who == unfinished || p.who == admins || p.who == sender || p.who == uploader || p.who == files
	}
	return all
}
