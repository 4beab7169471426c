# SPDX-License-Identifier: Apache-2.0
"""Counts over all programs of a run of pytest: how often a part of the verdict was right.

A test records record_property(PART, (program, what was said, whether it fits, the sentence)).
"""

# The shares that must fit; a run of a whole table fails below them.
PARTS = {
    "cause and culprits": 0.95,
    "line": 0.90,
    "first advice": 0.90,
    "culprits": 0.85,
    "at least one of them": 0.95,
}
LEAST_ROWS = 20  # of a whole table


def pytest_terminal_summary(terminalreporter):
    for part in PARTS:
        told = _told(terminalreporter, part)
        if told:
            _print_part(terminalreporter, part, told)


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and exitstatus == 0 and any(_misses_target(reporter, part) for part in PARTS):
        session.exitstatus = 1


def _told(terminalreporter, part):
    return [value for reports in terminalreporter.stats.values() for report in reports
            for name, value in getattr(report, "user_properties", ())
            if name == part and getattr(report, "when", "") == "call"]


def _misses_target(terminalreporter, part):
    told = _told(terminalreporter, part)
    return len(told) >= LEAST_ROWS and _count_fitting(told) < PARTS[part] * len(told)


def _count_fitting(told):
    return sum(1 for _, _, fits, _ in told if fits)


def _print_part(terminalreporter, part, told):
    terminalreporter.section(part)
    for program, said, fits, sentence in told:
        terminalreporter.write_line(f"{'fits' if fits else 'MISS'}  {program}: [{said}] {sentence}")
    verdict = ": too few" if _misses_target(terminalreporter, part) else ""
    target = f"(target {PARTS[part]:.0%})"
    terminalreporter.write_line(f"{part} fits {_count_fitting(told)} of {len(told)} {target}{verdict}")
