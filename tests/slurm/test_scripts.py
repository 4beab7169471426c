# SPDX-License-Identifier: Apache-2.0
"""TaskProlog, Prolog and Epilog, for sites without the SPANK plugin."""
import re
import time

import pytest
from cluster import USER
from conftest import WATCHED, Site, victim

LIBRARY = "/usr/lib/rollcall/librollcall.so"
SHOW = "sh -c 'env | grep -E \"^(ROLLCALL|LD_PRELOAD)\" | sort'"
SEGMENTS = f"/dev/shm/rollcall-{USER}"


@pytest.fixture(scope="module")
def plain(make_cluster):
    """A cluster with the scripts, and without the plugin."""
    return make_cluster(extra="TaskProlog=/usr/lib/rollcall/slurm/task_prolog\n"
                        "Prolog=/usr/lib/rollcall/slurm/prolog\nEpilog=/etc/slurm/epilog",
                        files=[("epilog", "#!/bin/sh\n[ ! -r /tmp/epilog-settings ] || . /tmp/epilog-settings\n"
                                "exec /usr/lib/rollcall/slurm/epilog\n")])


@pytest.fixture
def epilog_settings(plain):
    """epilog_settings(text): a script that the epilog's wrapper reads"""
    yield (plain.tmp / "epilog-settings").write_text
    (plain.tmp / "epilog-settings").unlink()


def is_idle(cluster):
    return cluster.states() == {"n1": "idle", "n2": "idle"}


def names(text):
    return sorted(set(re.findall(r"^ROLLCALL_JOB=(.*)$", text, re.MULTILINE)))


def test_task_prolog_gives_the_tasks_library_and_name(plain):
    out = plain.run_job(f"srun {SHOW}", "-n2", "-N2")
    assert out.count(f"LD_PRELOAD={LIBRARY}\n") == 2
    assert len(names(out)) == 1 and re.fullmatch(r"\d+-train", names(out)[0])


def test_task_prolog_keeps_what_is_preloaded_and_adds_no_second_copy(plain):
    jemalloc = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
    out = plain.run_job(f"{SHOW}\nLD_PRELOAD=$LD_PRELOAD srun {SHOW}\nLD_PRELOAD={jemalloc} srun {SHOW}")
    assert re.findall(r"LD_PRELOAD=(.*)", out) == [LIBRARY, LIBRARY, f"{LIBRARY}:{jemalloc}"]


@pytest.mark.parametrize("value", ["0", "off"])
def test_task_prolog_obeys_off(plain, value):
    out = plain.run_job(SHOW, env={"ROLLCALL": value})
    assert out == "ROLLCALL=0\n"


def test_task_prolog_names_arrays_and_components_as_the_plugin_does(plain):
    number = plain.submit(f"srun {SHOW}", "--array=3,5")
    plain.wait(lambda: all("ROLLCALL_JOB" in plain.output(f"{number}_{task}") for task in (3, 5)))
    assert [names(plain.output(f"{number}_{task}")) for task in (3, 5)] == [
        [f"{number}_3-train"], [f"{number}_5-train"]]
    script = "\n".join(f"echo ={groups}=; srun --het-group={groups} {SHOW}" for groups in ("0,1", "1"))
    number = plain.submit(script, "-n1", "-N1", ":", "-n2", "-N1")
    plain.wait_for_end(number)
    _, _, both, _, second = re.split(r"=(0,1|1)=\n", plain.output(number))
    assert names(both) == [f"{number}-train"] and names(second) == [f"{number}+1-train"]


def test_a_missing_library_fails_no_task(plain):
    plain.run("mv", LIBRARY, f"{LIBRARY}.away")
    try:
        assert "LD_PRELOAD" not in plain.run_job("srun sh -c 'env'\necho done")
    finally:
        plain.run("mv", f"{LIBRARY}.away", LIBRARY)


def test_prolog_makes_the_folder_for_segments_of_all_users(plain):
    plain.run_job("srun true")
    assert plain.run("stat", "-c", "%a %u", "/run/rollcall-jobs").stdout == "1777 0\n"


def segments(cluster):
    return cluster.run("sh", "-c", f"ls {SEGMENTS} 2> /dev/null", check=False).stdout.split()


def test_epilog_removes_the_segments_once_no_process_of_the_user_is_left(plain):
    plain.run_job(victim("healthy_mix"), "-n2", "-N2")
    plain.wait(lambda: is_idle(plain))
    assert segments(plain) == []


def test_epilog_leaves_the_segments_of_another_job_alone(plain):
    number = plain.submit(victim("one_rank_stops_calling"), "-n2", "-N2")
    plain.wait(lambda: len(segments(plain)) == 2, tell=lambda: plain.output(number))
    plain.run_job("srun true")
    assert len(segments(plain)) == 2
    plain.run("scancel", str(number))
    plain.wait(lambda: segments(plain) == [])


def test_epilog_keeps_copies_where_the_site_wants_them(plain, epilog_settings):
    epilog_settings("export ROLLCALL_KEEP=/tmp/kept")
    number = plain.submit(victim("one_rank_stops_calling"), "-n2", "-N2")
    plain.wait(lambda: len(segments(plain)) == 2)
    plain.run("scancel", str(number))
    plain.wait(lambda: segments(plain) == [] and is_idle(plain), tell=plain.states)  # the epilog has ended
    assert len(plain.run("sh", "-c", f"find /tmp/kept/{number} -name '*.seg'").stdout.split()) == 2
    analyzed = plain.run("/usr/lib/rollcall/bin/rollcall", "analyze", f"/tmp/kept/{number}", check=False)
    assert analyzed.returncode == 3 and "AllReduce #10" in analyzed.stdout


@pytest.mark.parametrize("text", [
    "PATH=/tmp/slow:$PATH; export PATH",     # a look at /proc that does not end
    "ROLLCALL_KEEP=/proc/nowhere; export ROLLCALL_KEEP",
    "unset SLURM_JOB_UID",
    "SLURM_JOB_UID=../..; export SLURM_JOB_UID",
    "PATH=/nowhere; export PATH",
], ids=["slow", "nowhere to keep", "no user", "hostile user", "no programs"])
def test_an_epilog_that_fails_or_does_not_end_drains_no_node(plain, epilog_settings, text):
    slow = plain.tmp / "slow"
    slow.mkdir(exist_ok=True)
    (slow / "grep").write_text("#!/bin/sh\nexec sleep 1000\n")
    (slow / "grep").chmod(0o755)
    epilog_settings(text)
    begun = time.monotonic()
    plain.run_job(victim("healthy_mix"), "-n2", "-N2")
    plain.wait(lambda: is_idle(plain), tell=plain.states)
    assert time.monotonic() - begun < 120, "it waits for what does not end"


def test_an_epilog_of_another_kind_would_drain(make_cluster):
    """So that the tests above show something."""
    cluster = make_cluster(extra="Epilog=/etc/slurm/epilog", files=[("epilog", "#!/bin/sh\nexit 1\n")])
    cluster.run_job("srun true")
    cluster.wait(lambda: "drained" in cluster.states().values(), tell=cluster.states)


def submit_until_it_runs(cluster, script, *flags):
    """In about a third of all tries slurmstepd of Slurm 22.05 ends while it makes the container, also without
    a plugin; Slurm then lets the job wait for minutes."""
    for _ in range(8):
        failed = cluster.logs().count("slurmstepd failed to send return code")
        number = cluster.submit(script, *flags)
        cluster.wait(lambda: f"{number}.0" in cluster.run("squeue", "-h", "-s", "-o", "%i").stdout or
                     cluster.logs().count("slurmstepd failed to send return code") > failed)
        if cluster.logs().count("slurmstepd failed to send return code") == failed:
            return number
        cluster.run("scancel", str(number))
        cluster.wait(lambda: is_idle(cluster), tell=cluster.states)
    pytest.skip("Slurm started no container in eight tries")


def test_a_job_with_its_own_shared_memory_is_named_and_remembered(make_cluster):
    """job_container/tmpfs: Slurm deletes the /dev/shm of the job when the job ends."""
    cluster = make_cluster(
        Site, plugstack=WATCHED, extra="JobContainerType=job_container/tmpfs", prolog_flags="Contain",
        files=[("job_container.conf", "AutoBasePath=true\nNodeName=n1 BasePath=/run/containers-1\n"
                "NodeName=n2 BasePath=/run/containers-2\n")])
    cluster.start_rollcall()
    number = submit_until_it_runs(cluster, victim("one_rank_stops_calling", "-n2 -N1"), "--rollcall", "-n2", "-N1")
    incident = cluster.wait_for_incident(f"{number}-train")
    assert incident["verdicts"][0]["culprits"][0]["rank"] == 1
    assert segments(cluster) == []  # of the host: the job's are its own
    cluster.wait(lambda: "rollcall" in cluster.job(number).get("Comment", ""), tell=lambda: cluster.output(number))
    cluster.run("scancel", str(number), user=USER)
    cluster.wait_for_state(number, "CANCELLED")
    ended = cluster.wait_for_incident(f"{number}-train", state="ended")
    assert ended["verdicts"][0]["summary"]
    cluster.wait(lambda: is_idle(cluster), tell=cluster.states)
