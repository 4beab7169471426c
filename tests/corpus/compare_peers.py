#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same generated hangs for three analysers: `rollcall analyze
--from=flight-recorder`, PyTorch's own analyser of the same dumps (torchfrtrace),
and the rule of NCCL's RAS (ranks that have launched fewer collectives than others
lag behind; processes that are gone are named). Prints a Markdown table.

    build/torch-venv/bin/python tests/corpus/compare_peers.py BUILD_DIR [CASES [SEED]]

Needs torch and tabulate (torchfrtrace ends in an error without it). Who is to blame
counts, not how it is called: a finding is right if it names exactly the culprits.
For torchfrtrace and RAS the first finding and any of their findings are counted
apart; for Rollcall only the first.
"""
import collections
import json
import logging
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile

from torch.distributed.flight_recorder import fr_trace


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines += record.getMessage().split("\n")


LOG = logging.getLogger("Flight Recorder")
LOG.handlers.clear()
LOG.propagate = False


def write_pickles(case, folder):
    """What the JSON says, as PyTorch pickles it."""
    count = 0
    for path in case.glob("rank_*.json"):
        dump = json.loads(path.read_text())
        for entry in dump["entries"]:
            entry["process_group"] = tuple(entry["process_group"])
        (folder / path.stem).write_bytes(pickle.dumps(dump, protocol=2))
        count += 1
    return count


def numbers(text):
    return frozenset(int(n) for n in re.findall(r"\d+", text))


def torchfrtrace(folder, ranks, dumps):
    """The sets of ranks that it names, in order; None if it ends in an error."""
    lines = Lines()
    LOG.addHandler(lines)
    arguments = [str(folder), "-p", "rank_"]
    if dumps < ranks:
        arguments.append("--allow-incomplete-ranks")
    try:
        fr_trace.main(arguments)
    except (Exception, SystemExit):
        return None
    finally:
        LOG.removeHandler(lines)
    findings = []
    for line in lines.lines:
        if line.startswith("missing ranks:") or "missed FR dumps from ranks" in line:
            findings.append(numbers(re.search(r"\{(.*?)\}", line).group(1) if "{" in line else ""))
        elif "Culprit rank" in line:
            findings.append(frozenset(int(n) for n in re.findall(r"Culprit rank (\d+)", line)))
    return [finding for finding in findings if finding]


def ras(case):
    """Communicator by communicator: who has launched fewer than the others."""
    findings = [frozenset(case["gone"])] if case["gone"] else []
    for ranks in case["launched"].values():
        launched = {int(rank): sum(counts.values()) for rank, counts in ranks.items()}
        if len(set(launched.values())) > 1:
            most = max(launched.values())
            findings.append(frozenset(r for r, n in launched.items() if n < most))
    return findings


def rollcall(build, folder):
    done = subprocess.run([build / "bin/rollcall", "analyze", "--from=flight-recorder",
                           "--format=json", folder], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        return None
    verdicts = json.loads(done.stdout)["verdicts"]
    return [frozenset(c["rank"] for c in v["culprits"]) for v in verdicts
            if not v.get("is_consequence")]


def is_right(case, findings, first_only):
    culprits = frozenset(case["culprits"])
    if not findings:
        return findings is not None and not culprits
    if first_only and case["several"]:  # each may have a finding of its own
        return bool(findings[0]) and findings[0] <= culprits
    of = findings[:1] if first_only else findings
    if case["among"]:
        return any(culprits <= finding for finding in of)
    return culprits in of


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    cases = sys.argv[2] if len(sys.argv) > 2 else "300"
    seed = sys.argv[3] if len(sys.argv) > 3 else "1"
    rows = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        subprocess.run([build / "corpus/rollcall_corpus_dumps", f"--out={scratch}/cases",
                        f"--cases={cases}", f"--seed={seed}"], check=True,
                       stdout=subprocess.DEVNULL)
        for path in sorted((scratch / "cases").iterdir()):
            case = json.loads((path / "case.json").read_text())
            folder = scratch / "dumps" / path.name
            folder.mkdir(parents=True)
            dumps = write_pickles(path, folder)
            ours = rollcall(build, folder) if dumps else []
            theirs = torchfrtrace(folder, case["ranks"], dumps) if dumps else []
            counts = ras(case)
            for row in (case["fault"], "all"):
                rows[row].update(
                    cases=1, ours=is_right(case, ours, True),
                    first=is_right(case, theirs, True), any=is_right(case, theirs, False),
                    error=theirs is None, ras_first=is_right(case, counts, True),
                    ras=is_right(case, counts, False))
    print("| fault | hangs | rollcall analyze | torchfrtrace: first finding | any finding "
          "| ended in an error | RAS rule: first | any |")
    print("|---|---|---|---|---|---|---|---|")
    for name in sorted(rows, key=lambda name: (name == "all", name)):
        r = rows[name]
        print(f"| {name} | {r['cases']} | {r['ours']} | {r['first']} | {r['any']} | {r['error']} "
              f"| {r['ras_first']} | {r['ras']} |")


if __name__ == "__main__":
    main()
