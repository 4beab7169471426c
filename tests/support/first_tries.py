# SPDX-License-Identifier: Apache-2.0
"""A plug-in of pytest: writes why a test failed that ran once more. pytest-rerunfailures keeps its name only."""


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"the first try of {report.nodeid}")
        terminalreporter.line(str(report.longrepr))
