# SPDX-License-Identifier: Apache-2.0
"""LD_PRELOAD=$(python -m rollcall) CMD: prints the path of the library."""

import sys

from rollcall import library_path

try:
    print(library_path())
except FileNotFoundError as error:
    sys.exit(f"rollcall: {error}")
