# SPDX-License-Identifier: Apache-2.0
"""A plug-in of pytest for all parts.

It writes why a test failed that ran once more: pytest-rerunfailures keeps its name only.

It gives each run a folder of its own for the folders of its tests. By default pytest puts them below one folder of
the user, and each run that begins takes the right to pass through that folder from other users: also from those as
whom the tests of another run work in it at that time.
"""
import shutil
import tempfile

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    is_worker = hasattr(config, "workerinput")  # of xdist: it has a folder below that of the run
    if not is_worker and config.option.basetemp is None:
        config.option.basetemp = tempfile.mkdtemp(prefix="rollcall-tests-")


def pytest_sessionfinish(session, exitstatus):
    """Keeps what tests that failed have left behind."""
    if not hasattr(session.config, "workerinput") and exitstatus == 0:
        shutil.rmtree(session.config.option.basetemp, ignore_errors=True)


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"the first try of {report.nodeid}")
        terminalreporter.line(str(report.longrepr))
