"""Groups, projects and repositories, with python-gitlab.

Each part does its work when it is loaded; all share one server.
"""

import importlib

for part in ("projects", "groups", "members", "repositories", "commits"):
    importlib.import_module(part)
