# SPDX-License-Identifier: Apache-2.0
"""The way over the network to the first link that does not move, as a picture and in words."""
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import ask
from playwright.sync_api import expect


def hop(rank, peer, wait, channel=2, seconds=12.4):
    return {"rank": rank, "peer": peer, "channel": channel, "wait": wait, "waited_seconds": seconds}


def ring(culprit, ranks):
    """From the last rank of the ring upstream to the culprit, which sends to rank culprit + 1."""
    waits = [hop((culprit + n) % ranks, (culprit + n - 1) % ranks, "receive")
             for n in range(ranks - 1, 0, -1)]
    return [*waits, hop(culprit, (culprit + 1) % ranks, "send")]


def walk(fault, hops, left_out=0):
    return {"fault": fault, "rank": hops[-1]["rank"], "peer": hops[-1]["peer"], "channels": 4,
            "agreeing": 3, "hops": hops, "hops_left_out": left_out}


@pytest.fixture
def show(open_page, daemon, start_job):
    """show(walk, **options) -> page of an incident with this walk."""
    start_job(daemon)
    incident = ask(daemon, "incident", id="a-job-1")

    def start(network, **options):
        incident["verdicts"][0]["network"] = network
        page = open_page(f"{daemon.page}/#/history", **options)
        page.route(re.compile(r"/api/v1/incident\?"), lambda route: route.fulfill(json=incident))
        page.goto(f"{daemon.page}/#/incident/a-job-1")
        expect(page.locator(".walk svg")).to_be_visible()
        return page

    return start


def names(page):
    return page.locator(".walk .node-name").all_text_contents()


def test_the_culprit_stands_on_top_and_the_link_below_it_is_stuck(show):
    page = show(walk("link", ring(5, 8)))
    assert names(page) == [f"rank {(5 + n) % 8}" for n in range(8)]
    assert page.locator(".walk .walk-link-stuck").count() == 1
    expect(page.locator(".walk text.walk-stuck")).to_have_text(
        ["✕ the first link that does not move", "no data gets to rank 6"])
    steps = page.locator(".walk li")
    expect(steps.first).to_have_text("Rank 5: the network does not carry what it has sent to rank 6")
    expect(steps.nth(1)).to_have_text(
        "Rank 6 waits for data from rank 5, channel 2, for 12 s: the first link that does not move")
    expect(page.locator(".walk")).to_contain_text("Of 4 channels that wait, 3 lead to rank 5.")


def test_an_arrow_points_up_at_a_receiver_whose_gpu_takes_nothing(show):
    page = show(walk("peer_gpu", [hop(1, 2, "receive"), hop(2, 7, "send_peer"),
                                  hop(7, 2, "receive_gpu")]))
    ends = [[float(line.get_attribute(end)) for end in ("y1", "y2")]
            for line in page.locator(".walk line").all()]
    assert ends[0][0] > ends[0][1] and ends[1][0] < ends[1][1], ends
    expect(page.locator(".walk li").first).to_have_text("Rank 7: its GPU does not take what it receives from rank 2")


def test_a_culprit_for_which_nobody_waits_stands_beside_its_peer_or_alone(show):
    assert names(show(walk("link", [hop(3, 0, "send")]))) == ["rank 3", "rank 0"]
    page = show(walk("proxy", [hop(3, -1, "")]))
    assert names(page) == ["rank 3"]
    assert page.locator(".walk line").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_long_way_is_shortened_and_fits_a_phone(show, theme):
    waits = [hop(16300 + n, 16299 + n, "receive_flush") for n in range(63, 0, -1)]
    page = show(walk("own_gpu", [*waits, hop(16300, 16301, "send_gpu")], left_out=100), theme=theme,
                width=360, height=740)
    shown = names(page)
    assert shown[0] == "rank 16300" and shown[-1] == "rank 16363"
    assert "156 ranks …" in shown and len(shown) == 9, shown
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    picture = page.locator(".walk svg").bounding_box()
    for text in page.locator(".walk svg text").all():
        box = text.bounding_box()
        assert box["x"] + box["width"] <= picture["x"] + picture["width"], text.text_content()
        assert box["height"] >= 11
    page.locator(".walk summary").click()
    assert page.locator(".walk li").count() == 65
    expect(page.locator(".walk li").nth(32)).to_have_text("100 ranks …")
    expect(page.locator(".walk summary")).to_have_text("155 more ranks on the way")
    found = Axe().run(page, context=".walk")
    assert found.violations_count == 0, found.generate_report()
