"""Groups, projects and repositories, with python-gitlab.

Each part runs when it is imported; all share one server.
"""

import importlib

for part in ("projects", "groups", "members", "repositories", "commits"):
    importlib.import_module(part)
