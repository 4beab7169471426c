#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `rollcall demo` and draws what it prints, line by line at the speed at which it comes:

    docs/record_demo.py build/release/bin/rollcall          # writes docs/images/demo.svg

The picture plays once and then stays. It stands still for people who ask for less motion. Exit 0: written. Exit 1:
the demo printed no verdict.
"""
import html
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import time

PICTURE = pathlib.Path(__file__).resolve().parent / "images" / "demo.svg"
COLUMNS, LINE, MARGIN, TOP = 104, 19, 16, 44
START_S = 1.0  # how long the command stands alone

STYLE = """
    :root { --ink: #1f2933; --dim: #616e7c; --line: #9aa5b1; --box: #f5f7fa; --bad: #c62f3c; }
    @media (prefers-color-scheme: dark) {
    :root { --ink: #e4e7eb; --dim: #9aa5b1; --line: #616e7c; --box: #1f2933; --bad: #ff6b77; }
    }
    text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: var(--ink); white-space: pre; }
    .box { fill: var(--box); stroke: var(--line); }
    .dim { fill: var(--dim); } .verdict { fill: var(--bad); font-weight: bold; }
    .line { animation: show 0.2s both; }
    @keyframes show { from { opacity: 0; } to { opacity: 1; } }
    @media (prefers-reduced-motion: reduce) { .line { animation: none; } }
"""


def record(program):
    """The lines that the demo prints, each with the seconds since its start."""
    lines, start = [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        demo = subprocess.Popen([program, "demo"], cwd=folder, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
        for line in demo.stdout:
            lines.append((time.monotonic() - start, of_any_machine(line.rstrip("\n"))))
        demo.wait()
    return lines


def of_any_machine(line):
    """The line without this host's name and its folders."""
    line = re.sub(rf"\b{re.escape(socket.gethostname())}\b", "node-1", line)
    line = re.sub(r"/\S*/(rollcall-reports/)", r"\1", line)
    return re.sub(r"python3 /\S*/", "python3 ", line)


def condensed(lines):
    """The lines up to the end of the job."""
    shown = []
    for seconds, line in lines:
        if line:
            shown.append((seconds, line))
        if line.startswith("rollcall: ending the job"):
            break
    return shown


def wrapped(line):
    """A line as a terminal of COLUMNS shows it, broken between words."""
    indent = "    " if line.startswith("rollcall: ") else "      "
    return textwrap.wrap(line, COLUMNS, subsequent_indent=indent, break_on_hyphens=False) or [""]


def kind(line):
    if re.match(r"rollcall: rank", line):
        return "verdict"
    return "" if line.startswith("rollcall") else "dim"


def drawn(lines):
    """The rows of the picture, as elements."""
    rows = [(0, "line", "$ rollcall demo")]
    rows += [(START_S + seconds, f"line {kind(line)}".strip(), part)
             for seconds, line in lines for part in wrapped(line)]
    return [f'<text class="{look}" x="{MARGIN}" y="{TOP + LINE * row}" style="animation-delay: {seconds:.1f}s">'
            f"{html.escape(part)}</text>" for row, (seconds, look, part) in enumerate(rows)]


def picture(lines):
    rows = drawn(lines)
    width, height = 2 * MARGIN + 8 * COLUMNS, TOP + LINE * len(rows)
    title = "rollcall demo: a job of four ranks hangs, and Rollcall names the rank at fault"
    buttons = [f'<circle cx="{MARGIN + 4 + 16 * n}" cy="17" r="5" style="fill: var(--line)"/>' for n in range(3)]
    frame = f'<rect class="box" x="1" y="1" width="{width - 2}" height="{height - 2}" rx="8"/>'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-label="{title}" xml:space="preserve">\n  <title>{title}</title>\n'
            f"  <style>{STYLE}  </style>\n  " + "\n  ".join([frame, *buttons, *rows]) + "\n</svg>\n")


def main(program):
    lines = record(pathlib.Path(program).resolve())
    if not any(kind(line) == "verdict" for _, line in lines):
        sys.exit("docs/record_demo.py: the demo printed no verdict:\n" + "\n".join(line for _, line in lines))
    PICTURE.write_text(picture(condensed(lines)))
    print(PICTURE)


if __name__ == "__main__":
    main(*sys.argv[1:])
