"""Releases and their links."""

from compat import URL, did, refused, same
from gitlab import exceptions as exc
from hosting import new_project

p = new_project("released")
r = p.releases.create({
    "name": "First", "tag_name": "v1", "ref": "main", "description": "notes",
    "assets": {"links": [{"name": "bin", "url": "https://example.org/bin", "direct_asset_path": "/bin"}]},
})
same((r.name, r.tag_name, r.author["username"], r.assets["count"]), ("First", "v1", "ada", 5))
same(r.assets["links"][0]["direct_asset_url"], f"{URL}/ada/released/-/releases/v1/downloads/bin")
with refused(exc.GitlabCreateError, 409, "Release already exists"):
    p.releases.create({"tag_name": "v1", "description": "again"})
with refused(exc.GitlabCreateError, 422, "Ref is not specified"):
    p.releases.create({"tag_name": "v2", "description": "no tag"})
r = p.releases.get("v1")
r.description = "more"
r.save()
same(p.releases.get("v1").description, "more")
same([x.tag_name for x in p.releases.list(get_all=True, per_page=1)], ["v1"])
did("created, changed and listed releases")

link = r.links.create({"name": "doc", "url": "https://example.org/doc", "link_type": "runbook"})
same((link.name, link.link_type), ("doc", "runbook"))
link.name = "docs"
link.save()
same([x.name for x in r.links.list(get_all=True)], ["docs", "bin"])
link.delete()
same([x.name for x in r.links.list(get_all=True)], ["bin"])
did("changed links")

p.releases.delete("v1")
with refused(exc.GitlabGetError, 404, "404 Not found"):
    p.releases.get("v1")
same(p.tags.get("v1").release, None)
did("deleted a release")
