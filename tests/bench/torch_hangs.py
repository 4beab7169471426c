# SPDX-License-Identifier: Apache-2.0
"""Measures when, and how correctly, Rollcall and PyTorch alone report each hang of tests/torch/.

    tests/torch/with_backend.sh build/release tests/bench/torch_hangs.py [RANKS,RANKS,...]

One job after another: each script with 2, 4 and 8 ranks under Rollcall (--hang-after=5s),
then with 4 ranks alone, and alone with TORCH_DISTRIBUTED_DEBUG=DETAIL, for LIMIT seconds each.
Prints a table. "told after": from the first rank's entering the call that hangs to the line on
the terminal, when the report is on the disk.
"""

import contextlib
import pathlib
import re
import sys
import tempfile

sys.path.extend(str(pathlib.Path(__file__).parents[1] / folder) for folder in ("torch", "support"))
from hang_cases import HANGS, Run

LIMIT_SECONDS = 20
# Messages of PyTorch when a job ends for another reason than the hang.
NO_WORD = re.compile(r"SignalException|ChildFailedError|Signal \d+ \(SIGTERM\)")


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as work:
        yield pathlib.Path(work)


def told_after(run):
    for line in run.said:
        found = re.search(r"waited (?:(\d+) min )?([\d.]+) (ms|s)", line)
        if found:
            seconds = float(found[2]) / (1000 if found[3] == "ms" else 1)
            return 60 * int(found[1] or 0) + seconds
    return None


def under_rollcall(hang, ranks):
    with folder() as work:
        run = Run(hang, work, ranks=ranks).go()
        if len(run.incidents) != 1:
            return f"{len(run.incidents)} incidents"
        verdict = run.incidents[0]["verdicts"][0]
        blamed = [culprit["rank"] for culprit in verdict["culprits"]]
        cause = "right" if verdict["cause"] == hang.cause else verdict["cause"]
        culprits = "right" if blamed == [hang.culprit(ranks)] else f"blames {blamed}"
        return f"{told_after(run)} s, cause {cause}, culprit {culprits}"


def alone(hang, env):
    with folder() as work:
        run = Run(hang, work, rollcall=False, env=env).go(LIMIT_SECONDS)
        words = [line for line in run.output.splitlines()
                 if re.match(r"\[rank\d+\]: (\w+\.)*\w*Error: ", line) and not NO_WORD.search(line)]
    if not words:
        return f"nothing in {LIMIT_SECONDS} s"
    said = words[0].replace("|", "/")
    return f"{said[:150]}... ({len(words)} ranks say so)" if len(said) > 150 else said


def main():
    sizes = [int(size) for size in (sys.argv[1] if len(sys.argv) > 1 else "2,4,8").split(",")]
    columns = ["hang", *(f"Rollcall, {size} ranks: told after" for size in sizes),
               "PyTorch alone, 4 ranks", "with TORCH_DISTRIBUTED_DEBUG=DETAIL, 4 ranks"]
    print("|", " | ".join(columns), "|")
    print("|" + "---|" * len(columns), flush=True)
    for hang in HANGS:
        cells = [hang.name, *(under_rollcall(hang, size) for size in sizes), alone(hang, {}),
                 alone(hang, {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})]
        print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
