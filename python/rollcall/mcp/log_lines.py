# SPDX-License-Identifier: Apache-2.0
"""Asks the program `rollcall explain`, which has the table of known lines of logs, and no daemon."""

import json
import subprocess

from rollcall.program import find_program

SECONDS = 20


class ExplainError(Exception):
    """The program gave no answer."""


def explain(text):
    """What is known of the lines in the text. Text goes in by stdin: as an argument it could name a file."""
    try:
        done = subprocess.run([find_program(), "explain", "--format=json", "-"], input=text.encode(),
                              capture_output=True, timeout=SECONDS, check=False)
        return json.loads(done.stdout)
    except FileNotFoundError as error:
        raise ExplainError(str(error)) from error
    except (subprocess.TimeoutExpired, OSError, ValueError) as error:
        raise ExplainError("`rollcall explain` gave no answer\n"
                           "  try it yourself:  rollcall explain \"THE LINE\"") from error
