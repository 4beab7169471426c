# SPDX-License-Identifier: Apache-2.0
"""The timeline of a job that really hangs: zoom, details, times, and its trace."""
import json
import pathlib
import re
import subprocess
import sys

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import ask, e2e
from playwright.sync_api import expect

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
import trace_format

UNITS = {"min": 60, "s": 1, "ms": 1e-3, "µs": 1e-6}


@pytest.fixture
def timeline(open_page, daemon, start_job):
    """timeline(ranks="0-3", **options) -> page with the timeline of a job whose rank 3 stops."""
    start_job(daemon)

    def start(ranks="0-3", **options):
        page = open_page(f"{daemon.page}/#/job/a-job?ranks={ranks}", **options)
        expect(page.locator("#calls canvas")).to_be_visible()
        page.locator("#calls canvas").scroll_into_view_if_needed()
        return page

    return start


def about(page):
    return page.locator("#calls p", has_text=" shown")


def shown_seconds(page):
    said = re.match(r"([\d.]+) (min|s|ms|µs)(?: (\d+) s)? shown", about(page).inner_text().strip())
    return float(said[1]) * UNITS[said[2]] + float(said[3] or 0)


def button(page, name):
    return page.get_by_role("group", name="timeline").get_by_role("button", name=name)


def stands_still(page, canvas, seconds=1.5, tries=8):
    """Whether the picture stays the same for that long. The first ones may still show how it was drawn."""
    before = canvas.screenshot()
    for _ in range(tries):
        page.wait_for_timeout(1000 * seconds)
        now = canvas.screenshot()
        if now == before:
            return True
        before = now
    return False


def save(page, tmp_path):
    with page.expect_download() as download:
        button(page, "Download trace").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    return json.loads(file.read_text())


def test_keys_zoom_and_move_the_timeline_and_live_shows_all_again(timeline):
    page = timeline()
    canvas = page.locator("#calls canvas")
    expect(about(page)).not_to_contain_text("held")
    whole = shown_seconds(page)
    canvas.focus()
    for _ in range(4):
        canvas.press("+")
    expect(about(page)).to_contain_text("held")
    closer = shown_seconds(page)
    assert closer < whole / 2
    canvas.press("ArrowLeft")
    canvas.press("-")
    assert shown_seconds(page) != closer
    assert stands_still(page, canvas), "what is held moves with the job"
    canvas.press("0")
    expect(about(page)).not_to_contain_text("held")
    expect(button(page, "Live")).to_be_disabled()


def test_buttons_zoom_and_move(timeline):
    page = timeline()
    expect(button(page, "Earlier")).to_be_disabled()
    whole = shown_seconds(page)
    button(page, "Zoom in").click()
    button(page, "Zoom in").click()
    assert shown_seconds(page) < whole
    picture = page.locator("#calls canvas").screenshot()
    button(page, "Earlier").click()
    assert page.locator("#calls canvas").screenshot() != picture
    for _ in range(6):
        if button(page, "Zoom out").is_disabled():
            break
        button(page, "Zoom out").click()
    expect(button(page, "Zoom out")).to_be_disabled()
    button(page, "Live").click()
    expect(about(page)).not_to_contain_text("held")


def test_the_wheel_zooms_only_with_ctrl_or_the_focus_and_dragging_moves(timeline):
    page = timeline()
    canvas = page.locator("#calls canvas")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.wheel(0, -200)
    page.wait_for_timeout(300)
    expect(about(page)).not_to_contain_text("held")  # the page has scrolled instead
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.move(*middle)
    whole = shown_seconds(page)
    page.keyboard.down("Control")
    for _ in range(4):
        page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    expect(about(page)).to_contain_text("held")
    assert shown_seconds(page) < whole
    before = canvas.screenshot()
    page.mouse.down()
    page.mouse.move(middle[0] + 120, middle[1], steps=4)
    page.mouse.up()
    page.mouse.move(box["x"] + 5, box["y"] + 20)
    assert canvas.screenshot() != before
    closer = shown_seconds(page)
    page.mouse.move(*middle)
    page.mouse.wheel(0, 600)  # the click has given the timeline the focus
    page.wait_for_timeout(300)
    assert shown_seconds(page) > closer


def test_keys_and_the_pointer_say_what_a_call_is(timeline, daemon):
    page = timeline()
    canvas = page.locator("#calls canvas")
    details = page.locator("#calls .hint").first
    calls = ask(daemon, "calls", job="a-job", ranks="0")["ranks"][0]["communicators"][0]["calls"]
    canvas.focus()
    canvas.press("ArrowDown")
    waits = calls[-1]
    name = f"{waits['call']['operation']} #{int(waits['call']['position'])}"
    expect(details).to_contain_text("rank 0 · ")
    expect(details).to_contain_text(name)
    expect(details).to_contain_text("waits")
    canvas.press("p")
    expect(details).to_contain_text(f"#{int(calls[-2]['call']['position'])}")
    expect(details).to_contain_text("on the host")
    canvas.press("n")
    expect(details).to_contain_text(name)
    moment = page.locator("#calls .hint").nth(1)
    expect(moment).to_contain_text(re.compile(r"^At .* ago: rank 0 .* in AllReduce #\d+; "))
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 10)
    expect(details).to_contain_text(name)
    expect(moment).to_contain_text("rank 3")


def test_times_are_ages_or_times_of_a_named_zone(timeline):
    page = timeline(timezone_id="Asia/Kolkata")
    expect(about(page)).to_contain_text(
        re.compile(r"times before \d\d:\d\d:\d\d \(Asia/\w+, UTC\+05:30\)"))
    page.get_by_label("Times").select_option("day")
    page.get_by_label("Time zone").select_option("utc")
    expect(about(page)).to_contain_text("times in UTC")
    canvas = page.locator("#calls canvas")
    canvas.focus()
    canvas.press("ArrowDown")
    expect(page.locator("#calls .hint").first).to_contain_text(
        re.compile(r"entered \d\d:\d\d:\d\d\.\d{6}"))
    page.get_by_label("Time zone").select_option("local")
    expect(about(page)).to_contain_text(re.compile(r"times in Asia/\w+, UTC\+05:30"))


def test_the_page_and_the_command_line_write_the_same_trace(timeline, daemon, tmp_path):
    page = timeline()
    button(page, "Zoom in").click()  # holds all calls that the daemon gives
    button(page, "Zoom out").click()
    page.wait_for_timeout(1000)
    mine = save(page, tmp_path)
    incident = ask(daemon, "incidents")["incidents"][0]["id"]
    file = tmp_path / "cli.json"
    done = subprocess.run([e2e.ROLLCALL, "report", f"--daemon={daemon.address}", incident,
                           f"--trace={file}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(file.read_text())
    calls = trace_format.check(mine)
    assert sorted(calls) == [0, 1, 2, 3]
    assert plain(calls) == plain(trace_format.check(theirs))
    names = [[{k: e[k] for k in ("name", "pid", "tid", "args")} for e in trace["traceEvents"]
              if e["ph"] == "M"] for trace in (mine, theirs)]
    assert names[0] == names[1]
    # The end is the moment of asking; a summary says how long ranks have waited.
    changing = ("covers_from", "covers_until", "summary")
    for key in mine["otherData"].keys() | theirs["otherData"].keys():
        assert key in changing or mine["otherData"][key] == theirs["otherData"][key], key


def plain(calls):
    """Without times: the daemon's wall clock moves them a little from answer to answer."""
    return {rank: [(e["ph"], e["name"], e["tid"],
                    {k: v for k, v in e["args"].items() if not k.endswith("_at")})
                   for e in events] for rank, events in calls.items()}


def test_the_trace_has_the_shown_window_only(timeline, tmp_path):
    page = timeline()
    canvas = page.locator("#calls canvas")
    whole = trace_format.check(save(page, tmp_path))
    canvas.focus()
    canvas.press("ArrowDown")
    for _ in range(3):
        canvas.press("p")
    for _ in range(10):
        canvas.press("+")
    part = trace_format.check(save(page, tmp_path))
    assert 0 < sum(map(len, part.values())) < sum(map(len, whole.values()))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_the_timeline_is_accessible_and_fits(timeline, theme, width):
    page = timeline(theme=theme, width=width)
    page.locator("#calls canvas").press("ArrowDown")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = Axe().run(page, context="#calls")
    assert found.violations_count == 0, found.generate_report()
