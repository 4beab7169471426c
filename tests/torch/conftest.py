# SPDX-License-Identifier: Apache-2.0
"""Prints what the tests of the frameworks recorded about the first piece of advice."""


def pytest_terminal_summary(terminalreporter):
    told = [value for reports in terminalreporter.stats.values() for report in reports
            for name, value in getattr(report, "user_properties", ())
            if name == "first advice" and getattr(report, "when", "") == "call"]
    if not told:
        return
    fits = sum(1 for _, _, fit, _ in told if fit)
    terminalreporter.section("first advice")
    for program, first, fit, summary in told:
        terminalreporter.write_line(f"{'fits' if fit else 'MISS'}  {program}: [{first}] {summary}")
    terminalreporter.write_line(f"first advice fits {fits} of {len(told)}")
