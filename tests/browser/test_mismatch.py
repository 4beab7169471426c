# SPDX-License-Identifier: Apache-2.0
"""A call that differs from that of the others, in the map, the timeline and the tables."""
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import ask
from playwright.sync_api import expect


@pytest.fixture
def mismatch(open_page, daemon, start_job):
    """mismatch(view="", **options) -> page of a job whose rank 0 broadcasts where the others reduce."""
    start_job(daemon, "one_rank_broadcasts", said="Broadcast")
    return lambda view="", **options: open_page(f"{daemon.page}/#/job/a-job{view}", **options)


def test_the_map_marks_the_rank_that_made_another_call(mismatch):
    page = mismatch()
    words = page.locator(".map .words")
    expect(words).to_contain_text("made another call than the others: rank 0")
    expect(words).to_contain_text("waiting for others: ranks 1-3 (3)")
    expect(page.locator(".legend").first).to_contain_text("≠ made another call than the others")
    page.locator(".map canvas").focus()
    expect(page.locator(".map .hint")).to_contain_text(
        "made another call than the others; a culprit")


def test_the_timeline_and_its_table_name_the_call_that_differs(mismatch):
    page = mismatch("?ranks=0-3")
    expect(page.locator("#calls .legend")).to_contain_text("≠ Another call than the others")
    canvas = page.locator("#calls canvas")
    canvas.press("ArrowDown")
    hint = page.locator("#calls .hint").first
    for _ in range(4):
        if "≠" in hint.inner_text():
            break
        canvas.press("p")
    expect(hint).to_contain_text(re.compile(
        r"≠ called Broadcast\(.*, root 0\) #5 where the others called AllReduce\(.*, sum\) #5"))
    page.locator("#calls summary").click()
    rows = page.get_by_role("region", name="calls").locator("tr.differs")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("≠ another call than the others")


def test_the_rows_of_the_communicator_and_of_its_member_name_the_difference(mismatch, daemon):
    page = mismatch()
    row = page.get_by_role("region", name="communicators").locator("tr.differs")
    expect(row).to_contain_text(re.compile(r"≠ rank 0 called Broadcast\(.*, root 0\) #5"))
    comm = ask(daemon, "job", job="a-job")["status"]["communicators"][0]["id"]
    page = mismatch(f"/communicator/{comm}")
    member = page.get_by_role("region", name="ranks").locator("tr.differs")
    expect(member).to_have_count(1)
    expect(member).to_contain_text("≠ called Broadcast")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1400])
def test_the_marks_are_for_everybody(mismatch, theme, width):
    page = mismatch(theme=theme, width=width)
    expect(page.get_by_role("region", name="communicators").locator("tr.differs")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    assert found.violations_count == 0, found.generate_report()
