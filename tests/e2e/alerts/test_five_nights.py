# SPDX-License-Identifier: Apache-2.0
"""What reaches a person in five nights: all that one receiver gets of five jobs, in order. The transcript is
build/logs/five_nights.txt."""
import signal

import pytest
from conftest import BUILD, rollcall
from processes import wait_for
from test_alerts import Service

TRANSCRIPT = BUILD.parent / "logs" / "five_nights.txt"
pytestmark = pytest.mark.long


class Night:
    def __init__(self, job, receiver):
        self.job, self.receiver = job, receiver

    def messages(self):
        return [body for _, _, _, body in self.receiver.taken if body["job"] == self.job]

    def statuses(self):
        return [message["status"] for message in self.messages()]

    def await_statuses(self, expected):
        wait_for(lambda: len(self.statuses()) >= len(expected), seconds=90)
        assert self.statuses() == expected, self.messages()

    def text(self):
        lines = [f"== {self.job}"]
        for message in self.messages():
            lines.append(f"[{message['status']}] {message['headline']}")
            lines += [f"    {name}: {message[name]}" for name in ("at", "advice") if message.get(name)]
        return "\n".join(lines) + "\n"


def test_five_nights_send_what_people_need_and_no_more(start_daemon, start_job, tmp_path, monkeypatch):
    monkeypatch.setenv("LAGS", "7")
    receiver = Service(lambda *_: "")
    flags = [f"--alert=json={receiver.url}", f"--history={tmp_path / 'history.db'}"]
    daemon = start_daemon(*flags)

    contradiction = Night("contradiction", receiver)
    job = start_job(daemon, victim="one_rank_broadcasts", name="contradiction", said="rank 0")
    contradiction.await_statuses(["firing"])
    job.kill()
    contradiction.await_statuses(["firing", "resolved"])

    wait = Night("wait", receiver)
    job = start_job(daemon, name="wait")
    wait.await_statuses(["firing"])
    incident = wait.messages()[0]["incident"]
    assert rollcall("acknowledge", f"--daemon={daemon.address}", incident).returncode == 0
    wait.await_statuses(["firing", "acknowledged"])
    job.kill()
    wait.await_statuses(["firing", "acknowledged", "resolved"])

    flapping = Night("flapping", receiver)
    job = start_job(daemon, victim="one_rank_lags_often", name="flapping", said=None)
    flapping.await_statuses(["firing", "updated"])
    job.kill()

    restart = Night("restart", receiver)
    job = start_job(daemon, name="restart")
    restart.await_statuses(["firing"])
    daemon.kill(signal.SIGKILL)
    daemon = start_daemon(f"--listen={daemon.address}", *flags)
    job.kill()
    restart.await_statuses(["firing", "resolved"])

    kill = Night("kill", receiver)
    job = start_job(daemon, victim="one_rank_dies", name="kill", said=None)
    kill.await_statuses(["firing"])
    job.kill()
    kill.await_statuses(["firing", "resolved"])

    nights = [contradiction, wait, flapping, restart, kill]
    TRANSCRIPT.write_text("\n".join(night.text() for night in nights))
    receiver.close()
    for night in nights:
        assert "idle since" in night.messages()[0]["headline"], night.messages()[0]
