# SPDX-License-Identifier: Apache-2.0
"""What helps a reader on every view: the time zone, the list of keys, the width of a report, whole marks."""
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import ask, e2e
from playwright.sync_api import expect

wait_for = e2e.wait_for
WCAG = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]}


def test_all_times_are_of_one_named_zone_that_the_reader_chooses_once(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/incident/a-job-1", timezone_id="Asia/Kolkata")
    zone = page.get_by_label("Time zone")
    expect(zone.locator("option:checked")).to_have_text(re.compile(r"^Asia/\w+, UTC\+05:30$"))
    opened = page.locator("main time").first
    here = opened.inner_text()
    zone.select_option("utc")
    expect(opened).not_to_have_text(here)
    utc = opened.inner_text()
    hour = int(opened.get_attribute("datetime")[11:13])
    assert int(re.search(r"(\d+):\d\d:\d\d", utc)[1]) % 12 == hour % 12
    page.reload()
    expect(page.get_by_label("Time zone")).to_have_value("utc")
    expect(page.locator("main time").first).to_have_text(utc)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1400])
def test_a_question_mark_lists_the_keys_and_escape_returns(open_page, daemon, start_job, theme, width):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/job/a-job", theme=theme, width=width)
    canvas = page.locator(".map canvas").first
    canvas.focus()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("to the next and previous problem")
    found = Axe().run(page, options=WCAG)
    assert found.violations_count == 0, found.generate_report()
    for _ in range(4):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || "
                             "document.querySelector('dialog').contains(document.activeElement)")
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    expect(canvas).to_be_focused()
    # In a field the character is text.
    page.locator("#calls input").focus()
    page.keyboard.press("?")
    expect(keys).to_have_count(0)
    page.get_by_role("button", name="Keys").click()
    expect(keys).to_be_visible()


def test_a_report_uses_the_width_and_has_the_zone_and_its_keys(open_page, daemon, start_job, tmp_path):
    start_job(daemon)
    report = next((tmp_path / "here").glob("*/report.html"))
    page = open_page(report.as_uri(), width=1800, timezone_id="Asia/Kolkata")
    expect(page.locator("h1")).to_contain_text("has not called AllReduce")
    assert page.locator(".cards").bounding_box()["width"] > 1600
    opened = page.locator("main time").first
    here = opened.inner_text()
    page.get_by_label("Time zone").select_option("utc")
    expect(opened).not_to_have_text(here)
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("Merged stacks")
    expect(keys).not_to_contain_text("Timeline")
    page.keyboard.press("Escape")
    found = Axe().run(page, options=WCAG)
    assert found.violations_count == 0, found.generate_report()


# The extent of the pixels in the colour of a culprit's mark.
EXTENT = """canvas => {
  const {width, height} = canvas;
  const data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  const wanted = [0x1a, 0x1f, 0x27];
  let box = [width, height, -1, -1];
  for (let i = 0; i < width * height; ++i) {
    if (!wanted.every((value, at) => data[4 * i + at] === value)) continue;
    const x = i % width, y = Math.floor(i / width);
    box = [Math.min(box[0], x), Math.min(box[1], y), Math.max(box[2], x), Math.max(box[3], y)];
  }
  return box;
}"""


def rank_states(daemon):
    maps = ask(daemon, "job", job="big")["maps"]
    return maps[0]["states"] if maps else ""


@pytest.mark.parametrize("rank", [0, 16383])
def test_the_ring_around_a_culprit_at_the_edge_is_whole(open_page, daemon, big_job, rank):
    big_job(daemon)
    page = open_page(f"{daemon.page}/#/history")
    wait_for(lambda: len(rank_states(daemon)) == 16384)
    view = ask(daemon, "job", job="big")
    view["culprits"] = [rank]
    states = view["maps"][0]["states"]
    view["maps"][0]["states"] = states[:rank] + "1" + states[rank + 1:]
    page.route(re.compile(r"/api/v1/job\?"), lambda route: route.fulfill(json=view))
    page.goto(f"{daemon.page}/#/job/big")
    canvas = page.locator(".map canvas").first
    page.wait_for_function(f"canvas => ({EXTENT})(canvas)[2] > 0", arg=canvas.element_handle())
    left, top, right, bottom = canvas.evaluate(EXTENT)
    assert right - left >= 17 and bottom - top >= 17, (left, top, right, bottom)
