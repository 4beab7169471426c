# SPDX-License-Identifier: Apache-2.0
"""Logging in to a page that needs a token, and out of it."""
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

TOKEN = "a-token-of-this-test-and-no-other"


@pytest.fixture
def closed(start_daemon, tmp_path):
    """A daemon whose page needs TOKEN."""
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o600)
    return start_daemon(f"--http-token-file={path}")


def log_in(page, token=TOKEN):
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()


def test_a_person_logs_in_and_comes_back_to_the_view(open_page, closed):
    page = open_page(f"{closed.page}/#/history")
    expect(page).to_have_url(f"{closed.page}/login#/history")
    assert Axe().run(page).response["violations"] == []
    log_in(page, "wrong")
    expect(page.get_by_role("alert")).to_contain_text("this token is unknown")
    log_in(page)
    expect(page).to_have_url(f"{closed.page}/#/history")
    expect(page.locator(".link")).to_contain_text("Live")
    expect(page.locator(".session")).to_contain_text("token of this page")


def test_the_page_says_that_its_daemon_is_insecure(open_page, start_daemon):
    page = open_page(start_daemon("--insecure").page)
    expect(page.get_by_role("alert")).to_contain_text("This daemon runs with --insecure")
    expect(page.locator("h1")).to_be_visible()
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    assert found.response["violations"] == []


def test_a_page_of_a_closed_daemon_has_no_such_banner(open_page, daemon):
    page = open_page(daemon.page)
    expect(page.locator(".link")).to_contain_text("Live")
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".insecure")).to_have_count(0)


def test_a_token_in_the_address_leaves_the_address(open_page, closed):
    page = open_page(f"{closed.page}/?token={TOKEN}#/history")
    expect(page.locator("h1")).to_contain_text("Incidents")
    assert TOKEN not in page.url


def test_a_link_of_another_site_with_a_token_must_be_confirmed(open_page, closed):
    page = open_page(f"{closed.page}/login")
    page.goto(f"data:text/html,<a href='{closed.page}/?token={TOKEN}%23/history'>go</a>")
    page.get_by_role("link", name="go").click()
    expect(page.get_by_role("alert")).to_contain_text("a link of another page")
    assert page.context.cookies() == []
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(f"{closed.page}/#/history")
    assert len(page.context.cookies()) == 1


def test_a_person_logs_out(open_page, closed):
    page = open_page(f"{closed.page}/?token={TOKEN}")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    page.goto(closed.page)
    expect(page.get_by_role("button", name="Log in")).to_be_visible()


def test_a_session_that_ends_leads_to_the_login(open_page, closed):
    page = open_page(f"{closed.page}/?token={TOKEN}#/history")
    expect(page.locator(".link")).to_contain_text("Live")
    page.context.clear_cookies()
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    log_in(page)
    expect(page).to_have_url(f"{closed.page}/#/history")


def test_a_link_from_elsewhere_needs_no_second_login(browser, closed):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{closed.page}/?token={TOKEN}")
    expect(page.locator(".session")).to_be_visible()
    # As a message with a link: the browser keeps a cookie of SameSite=Strict back.
    page.route("http://chat.example/", lambda route: route.fulfill(
        content_type="text/html", body=f'<a href="{closed.page}/#/history">an incident</a>'))
    page.goto("http://chat.example/")
    page.get_by_role("link", name="an incident").click()
    expect(page).to_have_url(f"{closed.page}/#/history")
    expect(page.locator(".session")).to_be_visible()
    context.close()
