# SPDX-License-Identifier: Apache-2.0
"""Counts over all programs of a run of pytest: how often a part of the verdict was right.

A test records record_property(PART, (program, what was said, whether it fits, the sentence)).
"""

PARTS = ("cause and culprits", "line", "first advice", "culprits", "at least one of them")


def pytest_terminal_summary(terminalreporter):
    for part in PARTS:
        told = [value for reports in terminalreporter.stats.values() for report in reports
                for name, value in getattr(report, "user_properties", ())
                if name == part and getattr(report, "when", "") == "call"]
        if told:
            _print_part(terminalreporter, part, told)


def _print_part(terminalreporter, part, told):
    terminalreporter.section(part)
    for program, said, fits, sentence in told:
        terminalreporter.write_line(f"{'fits' if fits else 'MISS'}  {program}: [{said}] {sentence}")
    fitting = sum(1 for _, _, fits, _ in told if fits)
    terminalreporter.write_line(f"{part} fits {fitting} of {len(told)}")
