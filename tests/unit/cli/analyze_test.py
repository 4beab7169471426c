# SPDX-License-Identifier: Apache-2.0
"""`rollcall analyze` on segments that real processes left, and on dumps and logs."""
import json
import os
import resource

import pytest
from command_line import leave_segment, rollcall


@pytest.fixture
def healthy(tmp_path):
    for rank in range(2):
        leave_segment(tmp_path / "segments", rank, "all_reduce all_reduce destroy")
    return tmp_path / "segments"


@pytest.fixture
def contradiction(tmp_path):
    for rank in range(3):
        count = 9 if rank == 1 else 8
        leave_segment(tmp_path / "hung", rank, f"all_reduce all_reduce={count} kill", size=3)
    return tmp_path / "hung"


def test_analyze_exits_with_0_without_a_hang(healthy):
    result = rollcall("analyze", healthy)
    assert result.returncode == 0
    assert result.stdout.endswith("no hang found\n")
    assert json.loads(rollcall("analyze", "--format=json", healthy).stdout)["verdicts"] == []


def test_analyze_exits_with_3_on_a_hang(contradiction):
    result = rollcall("analyze", "--format=json", contradiction)
    assert result.returncode == 3
    verdict = json.loads(result.stdout)["verdicts"][0]
    assert verdict["cause"] == "argument_mismatch"
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [1]
    assert int(verdict["call"]["position"]) == 1
    assert "count" in verdict["mismatched_fields"]
    assert "argument_mismatch" in rollcall("analyze", contradiction).stdout
    assert "<html" in rollcall("analyze", "--format=html", contradiction).stdout


def test_the_table_shows_the_position_of_every_rank(contradiction):
    lines = rollcall("analyze", contradiction).stdout.splitlines()
    assert any(line.split()[:3] == ["ranks", "last", "call"] for line in lines)
    rows = [line for line in lines if "#1 AllReduce" in line and ">" not in line]
    assert len(rows) == 2, rows  # ranks that agree share a line
    assert all(len(line) <= 100 for line in lines)


RAS_HEAD = """NCCL version 2.26.2 compiled with CUDA 12.6
Job summary
Communicators... (0.00s)
#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different AllReduce operation counts
  3 ranks have launched up to operation 5
  Rank 3 has launched up to operation 4 -- GPU 3 managed by process 9 on node n
"""


def test_analyze_reads_huge_files_of_a_folder_in_little_memory(tmp_path):
    for name in ("ras.txt", "rank_3.log"):
        with open(tmp_path / name, "w") as file:
            file.write(RAS_HEAD if name == "ras.txt" else "ValueError: x\n")
            file.truncate(8 << 30)
    limit = 1 << 30
    result = rollcall("analyze", tmp_path,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert result.returncode == 3, result.stderr
    assert f"{tmp_path}/ras.txt: only its first 4 MiB are read" in result.stderr
    assert "first error of rank 3: ValueError: x" in result.stdout


def test_analyze_joins_folders_from_many_hosts_into_one_job(tmp_path):
    for rank in range(3):
        leave_segment(tmp_path / f"host-{rank}" / "shm", rank,
                      f"all_reduce all_reduce={9 if rank == 1 else 8} kill", size=3)
    assert rollcall("analyze", tmp_path).returncode == 3
    assert rollcall("analyze", *tmp_path.iterdir()).returncode == 3
    # Without the segments of the second host only the missing rank shows.
    assert "argument_mismatch" not in rollcall(
        "analyze", tmp_path / "host-0", tmp_path / "host-2").stdout


def test_analyze_accepts_names_of_files(contradiction):
    result = rollcall("analyze", *contradiction.iterdir())
    assert result.returncode == 3
    assert "argument_mismatch" in result.stdout


def test_analyze_counts_a_folder_with_two_names_once(contradiction):
    def verdict(*paths):
        found = json.loads(rollcall("analyze", "--format=json", *paths).stdout)["verdicts"][0]
        return found["cause"], found["culprits"], found["waiting_ranks"]

    assert verdict(contradiction, f"{contradiction}/../hung") == verdict(contradiction)


def damage(segment, how):
    data = bytearray(segment.read_bytes())
    if how == "empty":
        data = b""
    elif how == "garbage":
        data = os.urandom(20000)
    elif how == "header cut off":
        data = data[:5000]
    elif how == "newer layout":
        data[8:12] = (99).to_bytes(4, "little")
    segment.write_bytes(data)


DAMAGE = [("empty", "cut short"), ("garbage", "not a Rollcall segment"),
          ("header cut off", "cut short"), ("newer layout", "segment layout 99")]


@pytest.mark.parametrize("how, words", DAMAGE)
def test_analyze_exits_with_2_if_all_files_are_damaged(tmp_path, how, words):
    segment = leave_segment(tmp_path / "segments", 0, "all_reduce")
    damage(segment, how)
    result = rollcall("analyze", tmp_path)
    assert result.returncode == 2
    assert words in result.stderr and str(segment) in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("how, words", DAMAGE)
def test_analyze_names_and_skips_a_damaged_file(contradiction, how, words):
    segment = leave_segment(contradiction, 3, "all_reduce", size=4, unique_id="another")
    damage(segment, how)
    result = rollcall("analyze", "--format=json", contradiction)
    assert result.returncode == 3
    assert words in result.stderr and str(segment) in result.stderr
    assert json.loads(result.stdout)["verdicts"][0]["cause"] == "argument_mismatch"


def test_analyze_reports_cut_off_records(healthy):
    segment = sorted(healthy.iterdir())[0]
    segment.write_bytes(segment.read_bytes()[:17000])
    result = rollcall("analyze", healthy)
    assert result.returncode in (0, 3)
    assert "cut short: 0 of 1 communicators" in result.stderr


def test_analyze_exits_with_2_on_a_folder_without_segments(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    result = rollcall("analyze", tmp_path)
    assert result.returncode == 2
    assert "no readable segments" in result.stderr


def write_dump(path, completed):
    """A dump of a rank that has made `completed` all-reduces and waits in no other."""
    entries = [{"record_id": i, "pg_id": 0, "process_group": ["0", "default_pg"],
                "collective_seq_id": i + 1, "profiling_name": "nccl:all_reduce",
                "input_sizes": [[8]], "output_sizes": [[8]], "input_dtypes": ["Float"],
                "time_created_ns": 10**18 + i, "state": "completed" if i < 4 else "scheduled"}
               for i in range(completed)]
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}
    path.write_text(json.dumps({"version": "2.10", "pg_config": config, "entries": entries}))


def test_analyze_judges_dumps_and_segments_and_logs_together(contradiction, tmp_path):
    for rank, calls in enumerate((5, 5, 4)):
        write_dump(tmp_path / f"trace_rank_{rank}.json", calls)
    (tmp_path / "rank_2.log").write_text("2026-11-23 10:00:01 start\nValueError: bad batch\n")
    result = rollcall("analyze", "--format=json", contradiction, tmp_path)
    assert result.returncode == 3, result.stderr
    root = json.loads(result.stdout)["verdicts"][0]
    assert root["cause"] == "argument_mismatch"
    other = [line for line in root["missing_evidence"] if "dumps of the Flight Recorder" in line]
    assert len(other) == 1 and "rank 2" in other[0], root["missing_evidence"]
    assert any("first error of rank 2" in line and "ValueError: bad batch" in line
               for line in root["evidence"]), root["evidence"]


def test_analyze_takes_dumps_without_a_flag(tmp_path):
    for rank, calls in enumerate((5, 5, 4)):
        write_dump(tmp_path / f"trace_rank_{rank}.json", calls)
    root = json.loads(rollcall("analyze", "--format=json", tmp_path).stdout)["verdicts"][0]
    assert root["cause"] == "missing_rank"
    assert [culprit["rank"] for culprit in root["culprits"]] == [2]


RAS = """\
NCCL version 2.26.2 compiled with CUDA 12.6

Job summary
===========

Communicators... (0.00s)
=============

Warnings
========

#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different AllReduce operation counts
  30 ranks have launched up to operation 641
  Rank 12 has launched up to operation 640 -- GPU 4 managed by process 323032 on node node-17
"""


def test_analyze_takes_the_output_of_ras_alone_as_possible_only(tmp_path):
    (tmp_path / "ras.txt").write_text(RAS)
    result = rollcall("analyze", "--format=json", tmp_path / "ras.txt")
    assert result.returncode == 3, result.stderr
    root = json.loads(result.stdout)["verdicts"][0]
    assert (root["cause"], root["certainty"]) == ("missing_rank", "possible")
    (culprit,) = root["culprits"]
    assert (culprit["rank"], culprit["host"], culprit["pid"]) == (12, "node-17", 323032)
    assert any("one moment" in line for line in root["missing_evidence"])


def test_analyze_adds_what_ras_says_to_the_verdict_of_the_segments(contradiction, tmp_path):
    (tmp_path / "ras.txt").write_text(RAS)
    result = rollcall("analyze", "--format=json", contradiction, tmp_path / "ras.txt")
    assert result.returncode == 3, result.stderr
    root = json.loads(result.stdout)["verdicts"][0]
    assert (root["cause"], root["certainty"]) == ("argument_mismatch", "certain")
    assert any(line.startswith("RAS: different numbers of AllReduce calls") and "rank 12" in line
               for line in root["evidence"]), root["evidence"]


def test_analyze_says_that_dumps_and_segments_show_the_same(contradiction, tmp_path):
    for rank in range(3):
        dump = tmp_path / f"trace_rank_{rank}.json"
        write_dump(dump, 2)
        if rank == 1:
            dump.write_text(dump.read_text().replace("[[8]]", "[[9]]"))
    result = rollcall("analyze", "--format=json", tmp_path)
    root = json.loads(result.stdout)["verdicts"][0]
    assert (root["cause"], [c["rank"] for c in root["culprits"]]) == ("argument_mismatch", [1])
    assert root["culprits"][0]["pid"] > 0
    same = [line for line in root["evidence"] if "the dumps of the Flight Recorder show the same" in line]
    assert len(same) == 1, root


def test_analyze_exits_with_2_where_a_cut_off_dump_may_hide_the_hang(tmp_path):
    for rank in range(3):
        write_dump(tmp_path / f"trace_rank_{rank}.json", 4)
    assert rollcall("analyze", tmp_path).returncode == 0
    whole = (tmp_path / "trace_rank_2.json").read_text()
    (tmp_path / "trace_rank_2.json").write_text(whole[:len(whole) // 2])
    result = rollcall("analyze", tmp_path)
    assert result.returncode == 2, result.stdout
    assert "1 of the dumps cannot be read" in result.stderr
    assert "trace_rank_2.json" in result.stderr


def test_analyze_names_a_cut_off_dump_where_the_others_show_the_hang(tmp_path):
    for rank, calls in enumerate((5, 5, 4, 5)):
        write_dump(tmp_path / f"trace_rank_{rank}.json", calls)
    whole = (tmp_path / "trace_rank_3.json").read_text()
    (tmp_path / "trace_rank_3.json").write_text(whole[:len(whole) // 2])
    result = rollcall("analyze", "--format=json", tmp_path)
    assert result.returncode == 3, result.stderr
    assert "trace_rank_3.json" in result.stderr
    assert json.loads(result.stdout)["verdicts"][0]["culprits"][0]["rank"] == 2


def test_analyze_of_logs_alone_is_bad_input(tmp_path):
    (tmp_path / "train.log").write_text("[rank2]: ValueError: bad\n")
    assert rollcall("analyze", tmp_path / "train.log").returncode == 2


def test_analyze_exits_with_2_on_impossible_paths(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    (tmp_path / "notes.txt").write_text("nothing")
    for path in ("x" * 5000, loop, tmp_path / "notes.txt" / "below", "", tmp_path / "notes.txt"):
        result = rollcall("analyze", path)
        assert result.returncode == 2, str(path)[:80]
        assert result.stderr.startswith("rollcall analyze: ")


def test_analyze_does_not_block_on_pipes_folders_and_devices(healthy):
    os.mkfifo(healthy / "1-2.seg")
    (healthy / "3-4.seg").mkdir()
    (healthy / "5-6.seg").symlink_to("/dev/zero")
    result = rollcall("analyze", healthy)
    assert result.returncode == 0
    for name in ("1-2.seg", "3-4.seg", "5-6.seg"):
        assert name in result.stderr
