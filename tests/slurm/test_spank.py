# SPDX-License-Identifier: Apache-2.0
"""--rollcall of srun, sbatch and salloc, on a real Slurm."""
import json
import re

import pytest
from cluster import USER
from conftest import PLUGSTACK, WATCHED, victim

LIBRARY = "/usr/lib/rollcall/librollcall.so"
SHOW = "sh -c 'env | grep -E \"^(ROLLCALL|LD_PRELOAD)\" | sort'"


@pytest.fixture
def plugstack(site):
    """plugstack("library=... default=...") for one test"""
    yield lambda arguments: site.set_plugstack(PLUGSTACK.format(arguments=arguments))
    site.set_plugstack(WATCHED)


def srun(site, *flags, env=None, program=SHOW, user=USER):
    done = site.run("sh", "-c", f"srun {' '.join(flags)} {program}", user=user, env=env, check=False)
    return done.returncode, done.stdout, done.stderr


def variables(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def names(text):
    return sorted(set(re.findall(r"^ROLLCALL_JOB=(.*)$", text, re.MULTILINE)))


def test_the_option_is_in_the_help_of_all_three_commands(site):
    for command in ("srun", "sbatch", "salloc"):
        shown = " ".join(site.run(command, "--help").stdout.split())
        assert "find out why the job hangs; abort: end the step when it hangs" in shown, command


def test_a_step_has_the_library_and_the_name_of_the_job(site):
    _, out, _ = srun(site, "-n2", "-N2", "-J", "train", "--rollcall")
    assert out.count(f"LD_PRELOAD={LIBRARY}\n") == 2
    assert re.fullmatch(r"\d+-train", variables(out)["ROLLCALL_JOB"])
    assert "ROLLCALL_ON_HANG" not in out


def test_without_the_option_nothing_is_changed(site):
    assert srun(site, "-n1", program="sh -c 'env | grep -c -E \"ROLLCALL|LD_PRELOAD\"; true'")[1] == "0\n"


def test_an_option_of_sbatch_counts_for_the_script_and_its_steps_without_a_second_copy(site):
    out = site.run_job(f"{SHOW}\nsrun {SHOW}", "--rollcall=abort")
    assert out.count(f"LD_PRELOAD={LIBRARY}\n") == 2
    assert out.count("ROLLCALL_ON_HANG=abort\n") == 2
    assert "not abort" not in out and "not (null)" not in out


def test_an_option_without_an_argument_travels_from_sbatch_to_the_steps(site):
    out = site.run_job(f"srun {SHOW}", "--rollcall")
    assert "ROLLCALL=observe\n" in out and "takes observe" not in out


def test_a_mistyped_level_is_said_and_the_job_runs(site):
    code, out, err = srun(site, "-n1", "--rollcall=abrot")
    assert code == 0 and variables(out)["ROLLCALL"] == "observe"
    assert "--rollcall takes observe, abort or off, not abrot; this job is observed" in err


@pytest.mark.parametrize("flags,env", [(["--rollcall=off"], {}), ([], {"ROLLCALL": "off"}), ([], {"ROLLCALL": "0"})],
                         ids=["flag", "off", "0"])
def test_off_takes_the_library_out_again(site, plugstack, flags, env):
    plugstack("default=on")
    _, out, _ = srun(site, "-n1", env=env and {}, program=SHOW)
    assert LIBRARY in out  # as the site wants it
    _, out, _ = srun(site, "-n1", *flags,
                     env={**env, "LD_PRELOAD": f"{LIBRARY}:/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"})
    assert variables(out) == {"ROLLCALL": "0", "LD_PRELOAD": "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"}


def test_what_the_job_preloads_stays(site):
    env = {"LD_PRELOAD": "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"}
    _, out, _ = srun(site, "-n1", "--rollcall", env=env)
    assert variables(out)["LD_PRELOAD"] == f"{LIBRARY}:/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"


def test_a_name_that_the_user_gave_stays(site):
    _, out, _ = srun(site, "-n1", "--rollcall", env={"ROLLCALL_JOB": "mine"})
    assert variables(out)["ROLLCALL_JOB"] == "mine"


def test_a_folder_of_another_node_is_dropped(site):
    _, out, _ = srun(site, "-n1", "--rollcall", env={"ROLLCALL_DIR": "/dev/shm/rollcall-1/run-1-1"})
    assert "ROLLCALL_DIR" not in variables(out)


def test_dir_gives_each_user_a_folder(site, plugstack):
    plugstack("dir=/run/rollcall-jobs")
    _, out, _ = srun(site, "-n1", "--rollcall")
    assert variables(out)["ROLLCALL_DIR"] == f"/run/rollcall-jobs/{USER}"


BROKEN = {
    "missing": "rm -f {0}",
    "empty": ": > {0}",
    "no library": "echo hello > {0}",
    "cut short": "head -c 100000 /usr/lib/rollcall/librollcall.so > {0}",
    "for another CPU": r"cp /usr/lib/rollcall/librollcall.so {0}; printf '\267' | dd of={0} bs=1 seek=18 conv=notrunc",
    "a folder": "mkdir {0}",
    "unreadable": "cp /usr/lib/rollcall/librollcall.so {0}; chmod 0600 {0}",
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_library_that_cannot_be_used_fails_no_job(site, plugstack, how):
    broken = "/usr/lib/rollcall/broken-librollcall.so"
    site.run("sh", "-c", f"rm -rf {broken}; {BROKEN[how].format(broken)}")
    plugstack(f"library={broken}")
    code, out, err = srun(site, "-n2", "-N2", "--rollcall", program="sh -c 'env | grep -c LD_PRELOAD; echo done'")
    assert code == 0 and sorted(out.split()) == ["0", "0", "done", "done"], err
    assert err.count("this job runs without Rollcall: cannot use") == 1


@pytest.mark.parametrize("text", [
    "optional /usr/lib/rollcall/slurm/no_such_plugin.so\n",
    PLUGSTACK.format(arguments="default=sometimes colour=red"),
    PLUGSTACK.format(arguments="daemon=127.0.0.1:1 watch=/no/such/program"),
    PLUGSTACK.format(arguments="daemon=127.0.0.1:1"),
], ids=["no plugin", "wrong arguments", "no watcher", "no daemon"])
def test_a_wrong_plugstack_fails_no_job(site, text):
    site.set_plugstack(text)
    option = "" if "no_such_plugin" in text else "--rollcall"
    try:
        code, out, err = srun(site, "-n1", option, program="sh -c 'echo done'")
    finally:
        site.set_plugstack(WATCHED)
    assert code == 0 and out == "done\n", err


def doctor(site):
    """What the doctor says of Slurm in a step: (state, text)"""
    out = srun(site, "-n1", "--rollcall", program="/usr/lib/rollcall/bin/rollcall doctor --format=json")[1]
    [check] = [check for check in json.loads(out)["checks"] if check["id"] == "slurm"]
    return check["state"], check["what"]


def test_the_doctor_knows_the_job_and_the_plugin(site):
    state, text = doctor(site)
    assert state == "ok" and re.match(r"Slurm job \d+: ", text) and "srun --rollcall preloads the library" in text
    try:
        site.set_plugstack(WATCHED + "optional /usr/lib/rollcall/slurm/spank_rollcall.so.old\n")
        assert doctor(site)[0] == "ok"  # the first one counts
        site.set_plugstack("# optional /no/such/spank_rollcall.so\n")
        out = srun(site, "-n1", program="/usr/lib/rollcall/bin/rollcall doctor --format=json")[1]
        assert "preloads the library" not in out
    finally:
        site.set_plugstack(WATCHED)


def test_tasks_of_an_array_are_jobs_of_their_own(site):
    number = site.submit(f"srun {SHOW}", "--rollcall", "--array=3,5")
    site.wait(lambda: all("ROLLCALL_JOB" in site.output(f"{number}_{task}") for task in (3, 5)))
    assert [names(site.output(f"{number}_{task}")) for task in (3, 5)] == [
        [f"{number}_3-train"], [f"{number}_5-train"]]


def test_components_of_a_heterogeneous_job_are_jobs_of_their_own_and_one_in_a_common_step(site):
    script = "\n".join(f"echo ={groups}=; srun --het-group={groups} {SHOW}" for groups in ("0,1", "0", "1"))
    number = site.submit(script, "--rollcall", "-n1", "-N1", ":", "-n2", "-N1")
    site.wait_for_end(number)
    _, _, both, _, first, _, second = re.split(r"=(0,1|0|1)=\n", site.output(number))
    assert names(both) == [f"{number}-train"] and both.count("ROLLCALL_JOB") == 3
    assert names(first) == [f"{number}+0-train"]
    assert names(second) == [f"{number}+1-train"] and second.count("ROLLCALL_JOB") == 2


def test_a_hang_of_a_step_of_two_components_is_told_once(site):
    number = site.submit(victim("one_rank_stops_calling", "--het-group=0,1"), "--rollcall=abort",
                         "-n1", "-N1", ":", "-n1", "-N1", "--nodelist=n2")
    site.wait_for_end(number)
    assert site.output(number).count("has not called AllReduce") == 1, site.output(number)
    assert site.output(number).count("ending the step") == 1
    assert "rollcall: /mnt/rollcall-reports/" in site.job(number)["Comment"]


def test_abort_ends_the_step_and_the_script_goes_on(site):
    number = site.submit(f"{victim('one_rank_stops_calling')}\necho the step ended with $?",
                         "--rollcall=abort", "-n2", "-N2")
    site.wait_for_end(number)
    assert "ending the step, because it hangs (--rollcall=abort)" in site.output(number)
    assert re.search(r"the step ended with [1-9]", site.output(number))
    assert site.job(number)["JobState"] == "COMPLETED"


def test_abort_leaves_a_job_of_several_steps_alone(site):
    victims = victim("one_rank_stops_calling", "-n2 -N2 --overlap")
    number = site.submit(f"srun -n1 -N1 --overlap sleep 1000 &\n{victims}",
                         "--rollcall=abort", "-n2", "-N2")
    site.wait(lambda: "the step goes on: 2 steps of this job run" in site.output(number), 120,
              lambda: site.output(number))
    assert site.job(number)["JobState"] == "RUNNING"
    site.run("scancel", str(number), user=USER)
    site.wait_for_state(number, "CANCELLED")


def test_rollcall_run_around_srun_ends_a_job_of_abort_with_75(site):
    daemon = f"127.0.0.1:{site.daemon_port}"
    run = (f"/usr/lib/rollcall/bin/rollcall run --daemon={daemon} --token-file=/run/viewer --http=none "
           "--hang-after=3s -- ")
    number = site.submit(f"{run}{victim('one_rank_stops_calling')}\necho it ended with $?",
                         "--rollcall=abort", "-n2", "-N2")
    site.wait_for_end(number)
    assert "it ended with 75" in site.output(number), site.output(number)
    # At once, and once more at the end unless that comes within a second.
    assert site.output(number).count("has not called AllReduce") in (1, 2)


def test_a_healthy_job_ends_as_without_rollcall(site):
    out = site.run_job(victim("healthy_mix"), "--rollcall=abort", "-n2", "-N2")
    assert "rollcall" not in out
