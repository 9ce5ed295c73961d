"""Repositories: files, trees, archives, comparisons, changelog."""

import base64
import hashlib
import io
import tarfile
import zipfile

from compat import URL, did, refused, same
from gitlab import exceptions as exc
from hosting import ada_gl, new_project

p = new_project("papers")
PATH = "docs/a b/ünï.md"
f = p.files.create({"file_path": PATH, "branch": "main", "content": "one\ntwo\n", "commit_message": "write", "author_name": "Charles", "author_email": "charles@example.org"})
same((f.file_path, f.branch), (PATH, "main"))
f = p.files.get(PATH, ref="main")
same((f.decode(), f.size, f.file_name, f.encoding), (b"one\ntwo\n", 8, "ünï.md", "base64"))
same(f.content_sha256, hashlib.sha256(b"one\ntwo\n").hexdigest())
first = f.last_commit_id
f.content = "one\n2\n"
f.save(branch="main", commit_message="count")
same(p.files.raw(PATH, ref="main"), b"one\n2\n")
blame = p.files.blame(PATH, ref="main")
same([(x["commit"]["author_name"], x["lines"]) for x in blame], [("Charles", ["one"]), ("Name of ada", ["2"])])
p.files.create({"file_path": "bin", "branch": "main", "content": base64.b64encode(bytes(range(256))).decode(), "encoding": "base64", "commit_message": "bytes"})
same(p.files.raw("bin", ref="main"), bytes(range(256)))
got = io.BytesIO()
p.files.raw("bin", ref="main", streamed=True, action=got.write)
same(got.getvalue(), bytes(range(256)))
with refused(exc.GitlabCreateError, 400, "A file with this name already exists"):
    p.files.create({"file_path": "bin", "branch": "main", "content": "", "commit_message": "again"})
p.files.delete(file_path="bin", commit_message="drop", branch="main")
with refused(exc.GitlabGetError, 404, "404 File Not Found"):
    p.files.get("bin", ref="main")
same(p.files.get(PATH, ref=first).decode(), b"one\ntwo\n")
did("wrote, read and deleted files")

tree = p.repository_tree(get_all=True)
same([(x["type"], x["path"], x["mode"]) for x in tree], [("tree", "docs", "040000"), ("blob", "README.md", "100644")])
same([x["path"] for x in p.repository_tree(path="docs", ref="main", get_all=True)], ["docs/a b"])
everything = ["README.md", "docs", "docs/a b", PATH]
same([x["path"] for x in p.repository_tree(recursive=True, get_all=True)], everything)
same([x["path"] for x in p.repository_tree(recursive=True, iterator=True, pagination="keyset", per_page=3)], everything)
with refused(exc.GitlabGetError, 404, "404 Tree Not Found"):
    p.repository_tree(ref="nowhere", get_all=True)
blob = tree[1]["id"]
same(base64.b64decode(p.repository_blob(blob)["content"]), b"# papers\n\n")
same(p.repository_raw_blob(blob), b"# papers\n\n")
did("read trees and blobs")

head = p.branches.get("main").commit["id"]
root = f"papers-main-{head}"
with tarfile.open(fileobj=io.BytesIO(p.repository_archive(sha="main"))) as t:
    same(sorted(x.name for x in t if x.isfile()), [root + "/README.md", root + "/" + PATH])
got = io.BytesIO()
p.repository_archive(sha="main", format="zip", path="docs", streamed=True, action=got.write)
with zipfile.ZipFile(got) as z:
    same([x for x in z.namelist() if not x.endswith("/")], [f"{root}-docs/{PATH}"])
chunks = b"".join(p.repository_archive(format="tar.bz2", iterator=True))
with tarfile.open(fileobj=io.BytesIO(chunks)) as t:
    same(len([x for x in t if x.isfile()]), 2)
did("downloaded archives")

p.branches.create({"branch": "side", "ref": first})
p.files.create({"file_path": "side.txt", "branch": "side", "content": "s\n", "commit_message": "on side"})
compared = p.repository_compare("main", "side")
same(([c["title"] for c in compared["commits"]], [d["new_path"] for d in compared["diffs"]]), (["on side"], ["side.txt"]))
same(compared["diffs"][0]["diff"], "@@ -0,0 +1 @@\n+s\n")
same(sorted(d["new_path"] for d in p.repository_compare("main", "side", straight=True)["diffs"]), [PATH, "side.txt"])
same(p.repository_merge_base(["main", "side"])["id"], first)
people = p.repository_contributors(get_all=True, order_by="name", sort="asc")
same([(x["name"], x["commits"], x["additions"], x["deletions"]) for x in people], [("Charles", 1, 2, 0), ("Name of ada", 4, 3, 1)])
with refused(exc.GitlabGetError, 404, "404 Ref Not Found"):
    p.repository_compare("main", "nowhere")
did("compared branches and listed contributors")

p.tags.create({"tag_name": "v1.0.0", "ref": "main"})
c = p.commits.create({"branch": "main", "commit_message": "Add letters\n\nChangelog: added", "actions": [{"action": "create", "file_path": "b.txt", "content": "b\n"}]})
notes = ada_gl.http_get(f"/projects/{p.id}/repository/changelog", query_data={"version": "1.1.0", "date": "2030-01-02"})["notes"]
want = f"## 1.1.0 (2030-01-02)\n\n### added (1 change)\n\n- [Add letters]({URL}/ada/papers/-/commit/{c.id})\n"
same(notes, want + "\n")
same(ada_gl.http_post(f"/projects/{p.id}/repository/changelog", post_data={"version": "1.1.0", "date": "2030-01-02"}), {})
same(p.files.raw("CHANGELOG.md", ref="main").decode(), want)
did("wrote a changelog")
