"""Pipelines, variables, triggers, schedules and runners, with python-gitlab.

Each part runs when it is imported; all share one server.
"""

import importlib

for part in ("pipelines", "starters", "deploys"):
    importlib.import_module(part)
