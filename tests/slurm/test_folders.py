# SPDX-License-Identifier: Apache-2.0
"""Prolog, Epilog and TaskProlog against what users may leave in folders and names. As root, with a /dev/shm of
their own and no Slurm."""
import os
import subprocess

import pytest
from cluster import SLURM

USER, OTHER = 61234, 61235  # neither has a process
SHM = f"/dev/shm/rollcall-{USER}"
# Runs in a mount namespace of its own, in the folder of the test, and stops if it has none.
BEGIN = """\
set -e; mount -t tmpfs -o mode=1777 tmpfs /dev/shm; mount -t tmpfs -o mode=0755 tmpfs /run; cd "$TMP"; set +e
prolog() { "$SLURM/prolog" || echo the prolog failed; }
epilog() { "$SLURM/epilog" || echo the epilog failed; }
show() { stat -c '%n %F %a %u' "$@"; }
fill() {
  install -d -o "$SLURM_JOB_UID" -m 0700 "$SHM"
  echo segment > "$SHM/1.seg"
  chown "$SLURM_JOB_UID" "$SHM/1.seg"
}
"""


@pytest.fixture(scope="module", autouse=True)
def root():
    can = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], capture_output=True)
    if can.returncode != 0:
        pytest.skip("needs root, for a mount namespace")


@pytest.fixture
def shell(tmp_path):
    """shell(script): the lines that it prints, without an error. $SITE/USER: the other folder of segments;
    $KEEP: for copies"""
    tmp_path.chmod(0o755)

    def run(script, **variables):
        env = {"PATH": os.environ["PATH"], "SLURM_JOB_UID": str(USER), "SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1",
               "SITE": f"{tmp_path}/site", "ROLLCALL_SEGMENTS": f"{tmp_path}/site", "KEEP": f"{tmp_path}/kept",
               "TMP": str(tmp_path), "SHM": SHM, "SLURM": str(SLURM), **variables}
        done = subprocess.run(["unshare", "--mount", "sh", "-uc", BEGIN + script], capture_output=True, text=True,
                              env=env, timeout=120)
        assert done.stderr == "", done.stderr
        return done.stdout.splitlines()

    return run


# --- Epilog.
@pytest.fixture
def begins(tmp_path):
    """begins(script): at the second look at the processes, a process of the user has just begun and done this."""
    def make(script=":"):
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "grep").write_text(
            f'#!/bin/sh\necho >> {tmp_path}/looks\n[ "$(wc -l < {tmp_path}/looks)" = 2 ] || exec /usr/bin/grep "$@"\n'
            f"{script}\nprintf 'Uid:\\t{USER}\\t{USER}\\t{USER}\\t{USER}\\n'\n")
        (tmp_path / "bin" / "grep").chmod(0o755)
        return f"PATH={tmp_path}/bin:$PATH\n"
    return make


def test_segments_of_nobodys_processes_are_removed(shell):
    assert shell("fill; epilog; ls -A /dev/shm") == []


def test_a_process_that_begins_during_the_epilog_keeps_its_segments(shell, begins):
    script = begins() + "fill; epilog; ls $SHM; show $SHM; ls -A /dev/shm; wc -l < looks"
    assert shell(script) == ["1.seg", f"{SHM} directory 700 {USER}", f"rollcall-{USER}", "2"]


def test_segments_stay_aside_if_the_new_process_has_a_folder_and_go_with_a_later_epilog(shell, begins):
    script = begins(f"install -d -o {USER} {SHM}; echo > {SHM}/2.seg") + """\
fill; epilog; find /dev/shm -name '*.seg' | sed 's/.*[/]//' | sort; epilog; ls -A /dev/shm"""
    assert shell(script) == ["1.seg", "2.seg"]


def test_a_folder_of_somebody_else_is_not_taken_for_one_of_the_epilogs(shell):
    script = f"""\
theirs=/dev/shm/.rollcall-epilog-{USER}.x
mkdir -p $theirs/segments; echo theirs > $theirs/segments/1.seg; chown -R {OTHER} $theirs
mkdir mine; echo mine > mine/file; ln -s $TMP/mine ${{theirs}}y; install -d -o {OTHER} $SHM
epilog; cat $theirs/segments/1.seg mine/file; show $SHM"""
    assert shell(script, ROLLCALL_KEEP="/nowhere") == ["theirs", "mine", f"{SHM} directory 755 {OTHER}"]


def test_an_epilog_that_cannot_look_at_processes_removes_nothing(shell):
    script = "mkdir bin; printf '#!/bin/sh\\nexit 2\\n' > bin/grep; chmod 0755 bin/grep; PATH=$TMP/bin:$PATH\n"
    assert shell(script + "fill; epilog; ls $SHM") == ["1.seg"]


def test_only_segments_are_kept(shell):
    script = f"""\
fill; mkdir $SHM/run-1-1 $SHM/folder.seg
echo > $SHM/run-1-1/2.seg; echo > $SHM/notes.txt; echo > "$SHM/a
b.seg"; echo > "$SHM/c d.seg"; mkfifo $SHM/fifo.seg
ln -s /etc/passwd $SHM/link.seg; ln -s /etc $SHM/up; chown -hR {USER} $SHM
echo theirs > /dev/shm/theirs; ln /dev/shm/theirs $SHM/theirs.seg; rm /dev/shm/theirs
export ROLLCALL_KEEP=$KEEP; epilog; ls -A /dev/shm; cd $KEEP; find . | sort; cat 7/n1/1.seg; show 7"""
    assert shell(script) == [".", "./7", "./7/n1", "./7/n1/1.seg", "./7/n1/run-1-1", "./7/n1/run-1-1/2.seg",
                             "segment", "7 directory 750 0"]


# A process that has had the folder open since before, as a process of a container with the user's
# subordinate numbers.
@pytest.mark.parametrize("place, path", [("a", "a/1.seg"), ("a", "a/b/1.seg"), ("a/b", "a/b/1.seg")])
def test_a_folder_that_becomes_a_link_during_the_copying_leads_to_nobodys_files(shell, place, path):
    script = f"""\
mkdir bin; printf '#!/bin/sh\n/usr/bin/sort "$@" > %s/sorted; mv {place} away; ln -s /dev/shm/theirs/{place} {place}
cat %s/sorted\n' "$TMP" "$TMP" > bin/sort; chmod 0755 bin/sort; PATH=$TMP/bin:$PATH
fill; mkdir -p $SHM/a/b; echo segment | tee $SHM/{path} > $SHM/2.seg; chown -R {USER} $SHM
install -d -m 0700 /dev/shm/theirs/a/b; echo secrets > /dev/shm/theirs/{path}
export ROLLCALL_KEEP=$KEEP; epilog; find $KEEP -name '*.seg' | xargs cat | /usr/bin/sort -u; ls -A /dev/shm"""
    assert shell(script) == ["segment", "theirs"]


def test_two_epilogs_at_once_copy_a_segment_once(shell):
    script = """\
mkdir bin; printf '#!/bin/sh\\nsleep 1\\nexec /bin/cp "$@"\\n' > bin/cp; chmod 0755 bin/cp; PATH=$TMP/bin:$PATH
export ROLLCALL_KEEP=$KEEP; fill; epilog & SLURMD_NODENAME=n2 epilog; wait
find $KEEP -name '*.seg' | wc -l; ls -A /dev/shm; stat -c %a /run/rollcall-epilog.lock"""
    assert shell(script) == ["1", "600"]


def test_at_most_256_mib_of_a_job_are_kept_and_the_newest_first(shell):
    script = f"""\
export ROLLCALL_KEEP=$KEEP; fill
truncate -s 150M $SHM/old.seg $SHM/new.seg; truncate -s 900G $SHM/huge.seg; touch -d '1 hour ago' $SHM/old.seg
chown {USER} $SHM/*; epilog; ls $KEEP/7/n1
fill; truncate -s 107M $SHM/2.seg; chown {USER} $SHM/2.seg; SLURMD_NODENAME=n2 epilog; ls $KEEP/7/n2"""
    # 150 MiB are taken, so the 107 of the other node are too many.
    assert shell(script) == ["1.seg", "new.seg", "1.seg"]


MANY = 20_000  # segments: more than an epilog can copy in its time, one by one


def many(folder="$SHM"):
    return f'seq -f "{folder}/%.0f.seg" {MANY} | xargs touch; chown -R {USER} $SHM\n'


def test_however_many_segments_there_are_the_epilog_ends_in_time_and_leaves_none(shell):
    assert shell("install -d $SHM\n" + many() + "epilog; ls -A /dev/shm") == []
    script = f"""\
install -d $SHM/run-1-1; seq -f "$SHM/run-1-1/%.0f.seg" 50 | xargs touch -d yesterday; fill
{many()}touch -d tomorrow $SHM/run-1-1/50.seg
export ROLLCALL_KEEP=$KEEP; began=$(date +%s); epilog; echo $(($(date +%s) - began))
ls -A /dev/shm; find $KEEP -name '*.seg' | wc -l; ls $KEEP/7/n1/run-1-1"""
    took, kept, *newest = shell(script)
    assert int(took) < 30  # it ends itself after ten
    assert 10 < int(kept) <= MANY + 50  # as many as this machine copies in five seconds
    assert "50.seg" in newest


# Each copy takes as long as a file server that is gone needs to fail.
def test_a_slow_folder_for_copies_costs_some_copies_and_leaves_no_segment(shell):
    script = """\
mkdir bin; printf '#!/bin/sh\\nsleep 60\\n' > bin/dd; chmod 0755 bin/dd; PATH=$TMP/bin:$PATH
export ROLLCALL_KEEP=$KEEP; fill; epilog; ls -A /dev/shm"""
    assert shell(script) == []


def test_what_an_epilog_has_left_goes_with_the_next_ones_of_any_user(shell):
    script = f"""\
fill; install -d -m 0700 /dev/shm/.rollcall-epilog-{OTHER}.0123456789/segments/deep
SLURM_JOB_UID={USER} epilog; ls -A /dev/shm"""
    assert shell(script) == []


def test_what_an_epilog_has_left_stays_while_a_process_of_its_user_lives(shell):
    script = f"""\
fill; install -d -m 0700 /dev/shm/.rollcall-epilog-{OTHER}.0123456789/segments
setpriv --reuid={OTHER} --clear-groups sleep 60 & sleep 0.3
epilog; ls -A /dev/shm; kill $!"""
    assert shell(script) == [f".rollcall-epilog-{OTHER}.0123456789"]


# Its reaper may take its time, as the first process of a machine does.
def test_a_process_that_has_ended_and_is_not_reaped_keeps_no_segment(shell):
    script = f"""\
sh -c 'setpriv --reuid={USER} --clear-groups true & exec sleep 20' & sleep 0.5
fill; epilog; ls -A /dev/shm; kill $!"""
    assert shell(script) == []


def test_the_copies_of_100_jobs_stay_and_the_oldest_go(shell):
    script = """\
export ROLLCALL_KEEP=$KEEP; fill; mkdir -p $KEEP/notes
for job in $(seq 1001 1120); do mkdir $KEEP/$job; touch -d "2020-01-01 UTC +$job min" $KEEP/$job; done
epilog; ls $KEEP | wc -l; ls $KEEP | grep -x -e 7 -e notes -e 1021 -e 1022 -e 1120"""
    assert shell(script) == ["101", "1022", "1120", "7", "notes"]


def test_a_job_without_segments_leaves_no_empty_folder(shell):
    script = f"export ROLLCALL_KEEP=$KEEP; install -d -o {USER} $SHM; epilog; find $KEEP -mindepth 1; ls -A /dev/shm"
    assert shell(script) == []


# --- Prolog.
def both(mode=700, owner=USER):
    return [f"{SHM} directory {mode} {owner}", f"{USER} directory {mode} {owner}", "0"]


# Both folders, and how many more there are beside them.
SHOW = f"cd $SITE; show $SHM {USER}; ls -A /dev/shm $SITE | grep -c '^[.]'; cd $TMP\n"
BOTH = f"mkdir -m 1777 $SITE; mkdir mine; for f in $SHM $SITE/{USER}; do "


def test_prolog_makes_the_folders_of_the_user(shell):
    assert shell(f"prolog; {SHOW}") == both()


@pytest.mark.parametrize("what", [f"install -d -o {OTHER}", "mkdir", "ln -s $TMP/mine", "mkfifo", "touch"],
                         ids=["empty folder", "empty folder of root", "link", "fifo", "file"])
def test_prolog_removes_what_somebody_else_has_put_there(shell, what):
    assert shell(f"{BOTH} {what} $f; done; prolog; {SHOW} show mine") == both() + ["mine directory 755 0"]


def test_prolog_puts_aside_a_folder_with_somebodys_files_and_loses_none(shell):
    script = f"{BOTH} install -d -o {OTHER} $f; echo theirs > $f/file; done; prolog; {SHOW}"
    after = "cd /; cat /dev/shm/.*.theirs/file $SITE/.*.theirs/file; stat -c '%u %a' /dev/shm/.*.theirs $SITE/.*.theirs"
    assert shell(script + after) == [*both()[:2], "2", "theirs", "theirs", f"{OTHER} 755", f"{OTHER} 755"]


def test_prolog_leaves_a_folder_that_it_cannot_put_aside(shell):
    script = f"mkdir $SHM; mount -t tmpfs -o uid={OTHER},mode=0755 tmpfs $SHM; echo theirs > $SHM/file; prolog;"
    assert shell(f"{script} show $SHM; cat $SHM/file; ls -A /dev/shm") == [
        f"{SHM} directory 755 {OTHER}", "theirs", f"rollcall-{USER}"]


def test_prolog_leaves_the_users_own_folder_as_it_is(shell):
    assert shell(f"install -d -o {USER} -m 0750 $SHM; echo mine > $SHM/1.seg; prolog; show $SHM; cat $SHM/1.seg") == [
        f"{SHM} directory 750 {USER}", "mine"]


@pytest.mark.parametrize("before,made", [
    ("SLURM_JOB_UID=", []), ("SLURM_JOB_UID=../x", []), ("SLURM_JOB_UID=0", []), ("unset SLURM_JOB_UID", []),
    ("PATH=/nowhere", []), ("ROLLCALL_SEGMENTS=/proc/no/such", [f"rollcall-{USER}"])])
def test_prolog_never_fails(shell, before, made):
    assert shell(f"{before}; prolog; /bin/ls -A /dev/shm") == made


# --- TaskProlog.
def task_prolog(**variables):
    env = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "7", "ROLLCALL_LIBRARY": "/bin/true", **variables}
    done = subprocess.run([SLURM / "task_prolog"], env=env, capture_output=True, text=True, timeout=120)
    return done.stdout.splitlines()


@pytest.mark.parametrize("name,job", [
    (r"a\nexport LD_AUDIT=/tmp/evil.so", r"7-a\nexport LD_AUDIT=/tmp/evil.so"),
    (r"a\c\061\\b", r"7-a\c\061\\b"),
    ("a\nexport LD_AUDIT=/tmp/evil.so\n\nprint x", "7-a export LD_AUDIT=/tmp/evil.so print x"),
    ("-n * $(id) %s `id`", "7--n * $(id) %s `id`"),
], ids=["a backslash", "more backslashes", "newlines", "what a shell reads"])
def test_a_name_stays_one_line_of_task_prolog(name, job):
    assert task_prolog(SLURM_JOB_NAME=name) == ["export LD_PRELOAD=/bin/true", f"export ROLLCALL_JOB={job}",
                                                f"export ROLLCALL_SLURM_JOB={job}"]


def test_a_preload_with_a_newline_makes_no_line_of_its_own():
    assert "export X=1" not in task_prolog(LD_PRELOAD="\nexport X=1")
