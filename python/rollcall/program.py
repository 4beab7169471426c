# SPDX-License-Identifier: Apache-2.0
"""Finds the program `rollcall` of this installation, for the parts of this package that start it."""

import contextlib
import os
import pathlib
import shutil
import sysconfig

from rollcall import library_path


def find_program():
    """The program `rollcall`, which finds its library itself. Raises FileNotFoundError."""
    places = [os.environ.get("PATH", os.defpath), sysconfig.get_path("scripts")]
    with contextlib.suppress(FileNotFoundError):
        places.append(str(pathlib.Path(library_path()).parent.parent / "bin"))  # a build
    if (program := shutil.which("rollcall", path=os.pathsep.join(places))) is None:
        raise FileNotFoundError("found no program `rollcall`: install Rollcall's wheel")
    return program
