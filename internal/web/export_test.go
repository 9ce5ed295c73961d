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

// Access returns the pages in the route tables, as "GET /path", with the name of
// the users who may open them.
func (w *Web) Access() map[string]string {
	names := map[access]string{anyone: "anyone", signedIn: "users", visitor: "visitors", unfinished: "users", admins: "administrators", sender: "users", uploader: "users", files: "users", secretURL: "anyone", poster: "anyone"}
	all := map[string]string{}
	for _, p := range w.pages {
		all[p.method+" "+p.path] = names[p.who]
	}
	return all
}
