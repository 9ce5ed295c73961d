"""Pipelines and all that starts and serves them, with python-gitlab.

Each part does its work when it is loaded; all share one server.
"""

import importlib

for part in ("pipelines", "starters", "deploys"):
    importlib.import_module(part)
