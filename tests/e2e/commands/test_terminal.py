# SPDX-License-Identifier: Apache-2.0
"""The commands status, watch, incidents, report, completion and man; and alerts."""
import http.server
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.request

import pytest
from conftest import BUILD, PATIENCE, ROLLCALL, VICTIMS
from terminal import Terminal


def subcommands():
    told = subprocess.run([ROLLCALL, "--help"], text=True, timeout=120, capture_output=True).stdout
    return re.findall(r"^  ([\w-]+)  +\w", told.split("Commands:")[1], re.MULTILINE)


def ask(daemon, *arguments, **options):
    return subprocess.run([ROLLCALL, *arguments], text=True, timeout=120, capture_output=True,
                          env={**os.environ, "ROLLCALL_DAEMON": daemon.address}, **options)


def test_the_next_daemon_also_lists_and_reports_an_incident(
        start_daemon, start_job, tmp_path):
    daemon = start_daemon()
    job = start_job(daemon)
    listed = ask(daemon, "incidents")
    assert re.search(r"UTC  confirmed  missing_rank +a-job-1\n +rank 3", listed.stdout)
    text = ask(daemon, "report", "a-job-1").stdout
    assert "has not called AllReduce" in " ".join(text.split()) and max(map(len, text.splitlines())) <= 100
    assert "Validate()" in ask(daemon, "report", "--format=stacks", "a-job-1").stdout
    page = ask(daemon, "report", "--format=html", "a-job-1").stdout
    assert page.startswith("<!doctype html>")
    job.kill()
    daemon.kill()
    daemon = start_daemon()
    listed = json.loads(ask(daemon, "incidents", "--format=json").stdout)
    assert [one["id"] for one in listed["incidents"]] == ["a-job-1"]
    kept = json.loads(ask(daemon, "report", "--format=json", "a-job-1").stdout)
    assert kept["state"] == "ended" and kept["verdicts"][0]["cause"] == "missing_rank"
    assert kept["stacks"] and kept["stack_tree"]["nodes"]
    start_job(daemon).kill()
    both = ask(daemon, "incidents", "a-job").stdout
    assert "a-job.1-2" in both and "repeated: rank 3 of a-job was at fault in 2" in both
    written = ask(daemon, "report", f"--report-dir={tmp_path / 'copy'}", "a-job-1")
    folder = written.stdout.strip()
    assert sorted(os.listdir(folder)) == ["incident.json", "report.html", "report.txt",
                                          "stacks.txt"]


def test_errors_of_wrong_questions_list_the_choices(daemon):
    unknown = ask(daemon, "report", "nosuch-1")
    assert unknown.returncode == 1
    assert 'no incident "nosuch-1"' in unknown.stderr and "rollcall incidents" in unknown.stderr
    assert ask(daemon, "incidents", "--from=yesterday").returncode == 2
    assert ask(daemon, "report").returncode == 2
    assert ask(daemon, "incidents").stdout == "no incidents\n"


def watch(daemon, **env):
    return Terminal([ROLLCALL, "watch"], {**os.environ, "TERM": "xterm-256color",
                                          "ROLLCALL_DAEMON": daemon.address, **env})


def test_status_lists_the_hang_first_in_one_line_as_wide_as_the_terminal(hung_daemon):
    lines = ask(hung_daemon, "status").stdout.splitlines()
    assert lines[0].startswith("1 job: 1 hung; ") and lines[1].startswith("a-job: rank 3 ")
    assert lines[2].startswith("STATE")
    assert len(lines) == 4 and re.match(r"hung +a-job +4 +(\d+m)?\d+s +rank 3 ", lines[3])
    assert ask(hung_daemon, "status", "--exit-code").returncode == 3
    assert ask(hung_daemon, "status").returncode == 0
    terminal = Terminal([ROLLCALL, "status"], {**os.environ, "TERM": "xterm",
                                               "ROLLCALL_DAEMON": hung_daemon.address}, columns=60)
    shown = terminal.read_until(b"...").decode()
    assert "\x1b[1;31mhung" in shown
    # The whole verdict, before the table that cuts it.
    before = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", shown.partition("STATE")[0]).split())
    assert re.search(r"a-job: rank 3 .*has not called AllReduce", before)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert max(len(line) for line in plain.splitlines()) <= 60
    assert terminal.process.wait(timeout=120) == 0


def test_status_of_one_job_has_its_whole_verdict_and_an_unknown_one_lists_the_choices(hung_daemon):
    text = ask(hung_daemon, "status", "a-job").stdout
    assert "has not called AllReduce" in text and "rank 3 is behind" in text
    for command in ("status", "watch"):
        unknown = ask(hung_daemon, command, "nosuch")
        assert (unknown.returncode, unknown.stdout) == (1, ""), command
        assert 'no job "nosuch"' in unknown.stderr and "a-job" in unknown.stderr, command


@pytest.mark.long
def test_a_job_that_was_killed_while_it_hung_says_so(daemon, start_job):
    start_job(daemon).kill()
    deadline = time.monotonic() + PATIENCE
    while "ended hung" not in (text := ask(daemon, "status").stdout):
        assert time.monotonic() < deadline, text
        time.sleep(0.1)
    assert "ended while hung: rank 3" in text


def test_watch_opens_a_job_and_goes_back(hung_daemon):
    terminal = watch(hung_daemon)
    terminal.read_until(b"is in `Validate`")
    terminal.press(b"\r")
    terminal.read_until(b"Esc goes back")
    terminal.text = b""
    terminal.press(b"\x1b")
    terminal.read_until(b"Enter opens a job")
    terminal.press(b"q")
    assert terminal.process.wait(timeout=120) == 0


def test_explain_takes_a_line_a_file_and_a_pipe(tmp_path):
    line = "[rank3]:[E1120] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)"

    def explain(*arguments, **options):
        return subprocess.run([ROLLCALL, "explain", *arguments], text=True, timeout=120,
                              capture_output=True, **options)

    log = tmp_path / "log"
    log.write_text("epoch 1\n" + line + "\n" + line + "\n")
    for result in [explain(line), explain(log), explain(input=log.read_text()),
                   explain("-", input=log.read_text())]:
        assert result.returncode == 0 and "nearly never the rank at fault" in result.stdout.replace(
            "\n    ", " ")
    found, = json.loads(explain("--format=json", log).stdout)
    assert (found["id"], found["line"], found["count"]) == ("torch-watchdog-timeout", 2, 2)
    assert explain("epoch 1: loss 0.3").returncode == 1
    assert explain(tmp_path).returncode == 2
    log.chmod(0)
    if os.geteuid() != 0:
        assert explain(log).returncode == 2


def test_demo_shows_a_verdict_and_needs_nothing(tmp_path):
    result = subprocess.run([ROLLCALL, "demo"], text=True, timeout=120, capture_output=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    told = " ".join(result.stderr.replace("rollcall:", "").split())
    assert "rank 3" in told and "`validate` (" in told and "has not called AllReduce #6" in told
    without = subprocess.run([ROLLCALL, "demo"], text=True, timeout=120, capture_output=True,
                             env={"PATH": str(tmp_path)})
    assert without.returncode == 1 and "python3 is not on the PATH" in without.stderr


def test_a_demo_that_a_person_stops_blames_no_library(tmp_path):
    demo = subprocess.Popen([ROLLCALL, "demo"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            cwd=tmp_path, start_new_session=True)
    while "step 0" not in demo.stdout.readline():
        assert demo.poll() is None
    os.killpg(demo.pid, signal.SIGINT)  # as Ctrl-C
    _, told = demo.communicate(timeout=120)
    assert demo.returncode == 128 + signal.SIGINT
    assert "stopped before the verdict" in told and "glibc" not in told and "Traceback" not in told


def test_errors_of_typing_suggest_what_was_meant(daemon):
    assert "did you mean status?" in ask(daemon, "staus").stderr
    assert "did you mean --hang-after?" in ask(daemon, "run", "--hang-aftr=3s", "--", "true").stderr
    assert "--sort" in ask(daemon, "help", "status").stdout


def test_watch_shows_the_hang_follows_the_window_and_gives_the_terminal_back(daemon, start_job):
    terminal = watch(daemon)
    terminal.read_until(b"no jobs")
    job = start_job(daemon)
    shown = terminal.read_until(b"is in `Validate`")
    assert re.search(rb"\x1b\[[0-9;]*3[123]m", shown)
    terminal.text = b""
    terminal.resize(30, 200)
    terminal.read_until(b"rank 3 is behind")
    # When the daemon ends, the screen shows that its data is out of date.
    daemon.kill()
    terminal.read_until(b"NOT UP TO DATE")
    terminal.press(b"q")
    terminal.read_until(b"\x1b[?1049l")  # the ordinary screen
    assert terminal.process.wait(timeout=120) == 0
    job.kill()


def test_watch_has_no_colours_with_no_color(hung_daemon):
    terminal = watch(hung_daemon, NO_COLOR="1")
    shown = terminal.read_until(b"is in `Validate`")
    assert not re.search(rb"\x1b\[[0-9;]*3[1-7]m", shown)
    terminal.press(b"q")
    assert terminal.process.wait(timeout=120) == 0


def test_watch_without_a_terminal_prints_changes_as_plain_lines(daemon, start_job):
    process = subprocess.Popen([ROLLCALL, "watch"], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "ROLLCALL_DAEMON": daemon.address})
    assert process.stdout.readline().startswith("no jobs")
    start_job(daemon)
    lines = []
    while not any("hung" in line for line in lines):
        lines.append(process.stdout.readline())
        assert lines[-1] != ""
    assert not any("\x1b" in line for line in lines)
    process.kill()
    process.wait()


def test_watch_without_a_daemon_says_so_and_ends(tmp_path):
    result = subprocess.run([ROLLCALL, "watch", "--daemon=127.0.0.1:1"], capture_output=True,
                            text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert result.returncode == 1
    assert "cannot reach the daemon at 127.0.0.1:1" in result.stderr


def complete(line, daemon="127.0.0.1:1"):
    """The words that bash offers at the end of the line."""
    script = f"""
source <({ROLLCALL} completion bash)
COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}
IFS=$' \\t\\n='; COMP_WORDS=()
while IFS= read -r word; do COMP_WORDS+=("$word"); done < <(
  python3 -c 'import re,sys; print("\\n".join(w for w in re.findall(r"=|[^ =]+| $", sys.argv[1])))' "$COMP_LINE" |
    sed 's/^ $//')
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
unset IFS
compopt() {{ :; }}
_rollcall
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    path = f"{ROLLCALL.parent}:{os.environ['PATH']}"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120,
                            env={**os.environ, "ROLLCALL_DAEMON": daemon, "PATH": path})
    assert result.stderr == "", result.stderr
    return result.stdout.split()


def test_bash_completes_commands_flags_and_choices():
    assert complete("rollcall ") == subcommands()
    assert complete("rollcall st") == ["status", "stacks"]
    assert "--hang-after=" in complete("rollcall run --")
    assert complete("rollcall run --on-hang=a") == ["abort"]
    assert "bash" in complete("rollcall run bas")
    assert complete("rollcall report --format=") == ["text", "stacks", "json", "html"]


def test_bash_completes_the_names_of_jobs_and_incidents(hung_daemon):
    assert complete("rollcall status ", hung_daemon.address)[-1] == "a-job"
    assert complete("rollcall stacks a-", hung_daemon.address) == ["a-job"]
    assert complete("rollcall report a-", hung_daemon.address) == ["a-job-1"]
    assert complete("rollcall status a-") == []  # there is no daemon


def test_bash_completes_the_flags_of_a_silence(daemon, start_job):
    start_job(daemon)
    begun = ask(daemon, "silence", "--job=b-*", "--format=json")
    silence = json.loads(begun.stdout)["id"]
    assert complete("rollcall silence --job=", daemon.address) == ["a-job"]
    assert complete("rollcall silence --job=a-", daemon.address) == ["a-job"]
    assert complete("rollcall silence --end=", daemon.address) == [silence]
    assert complete("rollcall silence --end=sil", daemon.address) == [silence]
    assert complete("rollcall silence --end=x", daemon.address) == []
    assert complete("rollcall silence --cause=rank_d", daemon.address) == ["rank_died"]
    assert "--job=" in complete("rollcall silence --", daemon.address)
    assert complete("rollcall note a-", daemon.address) == ["a-job-1"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_complete_the_flags_of_a_silence(shell):
    script = subprocess.run([ROLLCALL, "completion", shell], capture_output=True, text=True,
                            timeout=120).stdout
    for things in ("jobs", "silences"):
        assert f"rollcall completion --names={things}" in script
    flag = "-l end " if shell == "fish" else "'--end="
    line, = [line for line in script.splitlines() if flag in line and "--names=silences" in line]
    assert "silence" in line


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_accepts_its_completion_script(shell):
    script = subprocess.run([ROLLCALL, "completion", shell], capture_output=True, text=True,
                            timeout=120).stdout
    for command in subcommands():
        assert command in script
    try:
        checked = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True,
                                 timeout=120)
    except FileNotFoundError:
        pytest.skip(f"this machine has no {shell}")
    assert checked.returncode == 0, checked.stderr


def test_man_pages_have_every_flag_of_help():
    for command in subcommands():
        page = subprocess.run([ROLLCALL, "man", command], capture_output=True, text=True,
                              timeout=120).stdout.replace("\\-", "-")
        told = subprocess.run([ROLLCALL, command, "--help"], capture_output=True, text=True,
                              timeout=120).stdout
        for flag in re.findall(r"--[a-z-]+", told):
            if f"  {flag}" in told or f",{flag}" in told:
                assert f".B {flag}" in page, (command, flag)


def test_run_prints_hangs_in_few_lines_and_keeps_progress_bars_whole(tmp_path):
    job = (f"for i in 1 2 3; do printf '\\rprogress %d%%' $i >&2; sleep 0.1; done; "
           f"exec {VICTIMS / 'ranks'} -n 4 --keep-going -- {VICTIMS / 'one_rank_stops_calling'}")
    terminal = Terminal([ROLLCALL, "run", "--sim", "--hang-after=2s", "--on-hang=abort",
                         "--http=none", f"--report-dir={tmp_path}", "--", "bash", "-c", job],
                        {**os.environ, "TERM": "xterm"})
    shown = terminal.read_until(b"report.txt").decode()
    said = [line for line in shown.replace("\r\n", "\n").split("\n") if "rollcall:" in line]
    assert 2 <= len(said) <= 8, said
    # `rollcall run` clears the bar's line first, so no part of the bar precedes the message.
    assert re.search(r"\r\x1b\[Krollcall: \x1b\[1;31mrank 3", shown), shown
    plain = re.sub(r"\x1b\[[0-9;]*[mK]", "", shown)
    assert max(len(line) for line in plain.splitlines() if str(tmp_path) not in line) <= 80
    terminal.process.wait(timeout=120)


def test_run_on_another_host_shows_its_page_with_a_tunnel_and_its_verdict_once_more_after_ctrl_c(tmp_path):
    terminal = Terminal([ROLLCALL, "run", "--sim", "--hang-after=2s", f"--report-dir={tmp_path}",
                         VICTIMS / "ranks", "-n", "4", "--", VICTIMS / "one_rank_stops_calling"],
                        {**os.environ, "TERM": "xterm", "SSH_CONNECTION": "10.0.0.9 50000 10.0.0.1 22"})
    shown = terminal.read_until(b"report.txt").decode()
    port = re.search(r"live page: http://127\.0\.0\.1:(\d+)/", shown)[1]
    assert f"ssh -L {port}:127.0.0.1:{port} " in shown
    time.sleep(1)  # earlier, the first verdict is still on the screen
    terminal.press(b"\x03")
    terminal.read_until(b"the job ended. Verdict again")
    assert terminal.process.wait(timeout=120) != 0


class Receiver(http.server.BaseHTTPRequestHandler):
    got = []
    failures = 1

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Receiver.got.append(body)
        self.send_response(503 if len(Receiver.got) <= Receiver.failures else 200)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.mark.long
def test_the_daemon_sends_an_alert_for_the_hang_and_for_its_end(start_daemon, start_job, tmp_path):
    server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    secret = tmp_path / "url"
    secret.write_text(f"http://127.0.0.1:{server.server_port}/a-secret-path\n")
    daemon = start_daemon(f"--alert=json=@{secret}", "--page-url=https://rollcall.example/")
    job = start_job(daemon)
    job.kill()
    deadline = time.monotonic() + 40
    while len(Receiver.got) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    server.shutdown()
    assert [one["status"] for one in Receiver.got] == ["firing", "firing", "resolved"]
    assert Receiver.got[0]["incident"] == "a-job-1"
    assert Receiver.got[0]["link"] == "https://rollcall.example/#/incident/a-job-1"
    command_line = open(f"/proc/{daemon.process.pid}/cmdline").read()
    assert "a-secret-path" not in command_line


def test_the_page_demands_the_token_and_the_daemon_refuses_a_wrong_file(start_daemon, tmp_path):
    token = tmp_path / "token"
    secret = "0123456789abcdef" * 2
    token.write_text(secret + "\n")
    readable = subprocess.run([BUILD / "bin" / "rollcalld", f"--http-token-file={token}",
                               f"--report-dir={tmp_path / 'r'}"],
                              capture_output=True, text=True, timeout=120)
    assert readable.returncode == 1 and f"chmod go-rwx {token}" in readable.stderr
    token.chmod(0o600)
    daemon = start_daemon(f"--http-token-file={token}")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{daemon.page}/api/v1/jobs", timeout=120)
    assert refused.value.code == 401
    request = urllib.request.Request(f"{daemon.page}/api/v1/jobs",
                                     headers={"Authorization": f"Bearer {secret}"})
    assert json.load(urllib.request.urlopen(request, timeout=120))["jobs"] == []
    token.write_text(secret[1:] + "\n")  # too short; a running daemon does not read it
    assert json.load(urllib.request.urlopen(request, timeout=120))["jobs"] == []
    result = subprocess.run([BUILD / "bin" / "rollcalld", f"--http-token-file={token}",
                             f"--report-dir={tmp_path / 'r'}"],
                            capture_output=True, text=True, timeout=120)
    assert result.returncode == 1 and "at least 32 letters and digits" in result.stderr
    assert "openssl rand -hex 32" in result.stderr and "rollcall token new" in result.stderr
