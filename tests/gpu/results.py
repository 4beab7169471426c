# SPDX-License-Identifier: Apache-2.0
"""What came out: a line for people on standard output, and one for programs in OUT/results.jsonl.

The first line of the file says on what the checks ran. Each other line is one check:
  check, result     its name; pass, FAIL or skip
  why               of what did not pass: why; of a skip: what this machine lacks
  seconds           the time it took
  verdict           what Rollcall said last, if it said something: cause, certainty, culprits, network, evidence,
                    summary, as in incident.json
"""
import json
import time

KEPT = ("cause", "certainty", "summary", "network", "evidence", "missing_evidence")


class Results:
    def __init__(self, machine):
        self.file = machine.out / "results.jsonl"
        self.file.write_text(json.dumps({"machine": machine.facts()}) + "\n")
        self.counts = {"pass": 0, "FAIL": 0, "skip": 0}
        self.begun = time.monotonic()
        print(machine.about(), flush=True)

    def add(self, check, why="", verdict=None, output="", skipped=False):
        """why: empty if it passed. -> whether it passed"""
        result = "skip" if skipped else "FAIL" if why else "pass"
        self.counts[result] += 1
        line = {"check": check, "result": result, "why": why, "seconds": round(time.monotonic() - self.begun, 1)}
        self.begun = time.monotonic()
        if verdict:
            line["verdict"] = {key: verdict[key] for key in KEPT if key in verdict}
            line["verdict"]["culprits"] = [culprit["rank"] for culprit in verdict["culprits"]]
        with self.file.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self._print(line, output)
        return result == "pass"

    @staticmethod
    def _print(line, output):
        print(f"{line['result']}  {line['check']}" + (f": {line['why']}" if line["why"] else ""), flush=True)
        if line["result"] == "FAIL":
            print("\n".join(f"      | {text}" for text in output.splitlines()[-12:]), flush=True)

    def all_passed(self):
        """Says how many did, and where the file is."""
        checks = self.counts["pass"] + self.counts["FAIL"]
        print(f"{self.counts['pass']} of {checks} checks passed, {self.counts['skip']} left out: {self.file}\n",
              flush=True)
        return self.counts["FAIL"] == 0
