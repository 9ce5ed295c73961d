"""Generic packages."""

import os
import tempfile

from compat import did, refused, same
from gitlab import exceptions as exc
from hosting import ada_gl as gl
from hosting import new_project

gl.auth()
p = new_project("packages")
with tempfile.TemporaryDirectory() as d:
    path = os.path.join(d, "tool.bin")
    with open(path, "wb") as f:
        f.write(b"content")
    p.generic_packages.upload(package_name="tool", package_version="1.0.0", file_name="tool.bin", path=path)
same(p.generic_packages.download(package_name="tool", package_version="1.0.0", file_name="tool.bin"), b"content")
(one,) = p.packages.list(get_all=True)
same((one.name, one.version, one.package_type, one.status), ("tool", "1.0.0", "generic", "default"))
(file,) = p.packages.get(one.id).package_files.list(get_all=True)
same((file.file_name, file.size), ("tool.bin", 7))
did("published a package")

file.delete()
one.delete()
with refused(exc.GitlabGetError, 404, "404 Package Not Found"):
    p.packages.get(one.id)
did("deleted a package")
