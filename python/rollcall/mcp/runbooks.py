# SPDX-License-Identifier: Apache-2.0
"""The runbook of each cause, as the wheel has them beside this file and a checkout in docs/runbook."""

import pathlib

HERE = pathlib.Path(__file__).resolve()
PLACES = (HERE.parent / "runbook", HERE.parents[3] / "docs" / "runbook")


def runbooks():
    """Cause -> file."""
    return {file.stem: file for place in PLACES for file in sorted(place.glob("*.md"))}


def read_runbook(cause):
    """The text of a runbook. Raises KeyError. A cause is never a path."""
    return runbooks()[cause].read_text(encoding="utf-8")
