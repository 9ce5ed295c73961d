package web

// Routes lists the pages of the tables: "GET /path", and whether one must
// have signed in.
func (w *Web) Routes() map[string]bool {
	all := map[string]bool{}
	for _, p := range w.pages {
		all[p.method+" "+p.path] = p.who == signedIn || p.who == unfinished || p.who == admins || p.who == sender || p.who == uploader || p.who == files
	}
	return all
}
