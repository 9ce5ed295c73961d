"""Snippets and wikis."""

from compat import URL, did, refused, same
from gitlab import exceptions as exc
from hosting import ada_gl as gl
from hosting import new_project

gl.auth()
p = new_project("shelf")
own = gl.snippets.create({"title": "own", "visibility": "public", "file_name": "a.py", "content": "print(1)"})
gl.http_put(f"/snippets/{own.id}", post_data={"files": [{"action": "create", "file_path": "b.txt", "content": "b"}]})
own = gl.snippets.get(own.id)
same((own.title, own.visibility, own.author["username"], own.web_url), ("own", "public", "ada", f"{URL}/-/snippets/{own.id}"))
same([f["path"] for f in own.files], ["a.py", "b.txt"])
same(own.content(), b"print(1)")
own = gl.snippets.get(own.id)  # the client also sends attributes of lists that were read
own.title = "changed"
own.save()
same(gl.snippets.get(own.id).title, "changed")
same(own.id in [s.id for s in gl.snippets.list(get_all=True)], True)
same(own.id in [s.id for s in gl.snippets.public(get_all=True)], True)
did("made a snippet")

inside = p.snippets.create({"title": "inside", "file_name": "x.rb", "content": "puts 1", "visibility": "private"})
same((inside.project_id, inside.file_name, inside.content()), (p.id, "x.rb", b"puts 1"))
p.snippets.update(inside.id, {"content": "puts 2"})
same(p.snippets.get(inside.id).content(), b"puts 2")
inside.delete()
with refused(exc.GitlabGetError, 404, "404 Snippet Not Found"):
    p.snippets.get(inside.id)
own.delete()
did("made a snippet of a project")

page = p.wikis.create({"title": "docs/Setup guide", "content": "# Hi"})
same((page.slug, page.title, page.format, page.content, page.encoding), ("docs/Setup-guide", "Setup guide", "markdown", "# Hi", "UTF-8"))
page.content = "# Hello"
page.title = "Install"
page.save()
page = p.wikis.get("docs/Install")
same((page.content, [one.slug for one in p.wikis.list(get_all=True)]), ("# Hello", ["docs/Install"]))
same("<h1" in p.wikis.get("docs/Install", render_html=True).content, True)
file = gl.http_post(f"/projects/{p.id}/wikis/attachments", files={"file": ("pic.png", b"picture")})
same((file["file_name"], file["link"]["markdown"]), ("pic.png", f"![pic]({file['file_path']})"))
with refused(exc.GitlabGetError, 404, "404 Wiki Page Not Found"):
    p.wikis.get("none")
page.delete()
same(p.wikis.list(get_all=True), [])
did("wrote a wiki")
