# SPDX-License-Identifier: Apache-2.0
"""The built `rollcall`, for its tests, and segments that real processes leave."""
import os
import subprocess

ROLLCALL = os.environ["CLI_TEST_ROLLCALL"]
LIBRARY = os.environ["CLI_TEST_LIBRARY"]
STEPS = os.environ["CLI_TEST_STEPS"]
STUBS = os.environ["CLI_TEST_STUBS"]


def rollcall(*arguments, env=None, **more):
    more.setdefault("capture_output", True)
    more.setdefault("text", True)
    return subprocess.run([ROLLCALL, *map(str, arguments)], env={**os.environ, **(env or {})},
                          timeout=120, **more)


def leave_segment(folder, rank, steps, size=2, unique_id="one for all"):
    """Runs a process that takes these steps under the library."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = set(folder.iterdir())
    subprocess.run([STEPS, "id", f"init={size},{rank}", *steps.split()], check=False, env={
        **os.environ, "LD_PRELOAD": LIBRARY, "LD_LIBRARY_PATH": STUBS, "ROLLCALL_DIR": str(folder),
        "RANK": str(rank), "WORLD_SIZE": str(size), "STUB_UNIQUE_ID": unique_id,
        "ROLLCALL_JOB": "a job"})
    (segment,) = set(folder.iterdir()) - before
    return segment
