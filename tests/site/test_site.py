# SPDX-License-Identifier: Apache-2.0
"""The site of the docs works from its folder: links, search, both themes, and no network."""
import html.parser
import re
import subprocess
import urllib.parse

import pytest
from conftest import ROOT
from playwright.sync_api import expect

PAGES = ["index.html", "docs/first_five_minutes.html", "docs/concepts.html",
         "docs/troubleshooting.html", "docs/faq.html", "docs/compare.html",
         "docs/reference/flags.html", "docs/reference/causes.html", "docs/reference/metrics.html",
         "docs/reference/api.html"]


class Links(html.parser.HTMLParser):
    """What a page refers to, what of it a browser loads, and the anchors that the page has."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.anchors = set(), set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if tag == "a" and attributes.get("href"):
            self.links.add(attributes["href"])
        elif tag == "link" and attributes.get("rel") != "canonical":
            self.loaded.add(attributes["href"])
        elif attributes.get("src"):
            self.loaded.add(attributes["src"])


@pytest.fixture(scope="module")
def links(site):
    # The page for errors 404 is for servers only, and its links begin at the server's root.
    pages = [page for page in site.rglob("*.html") if page.name != "404.html"]
    assert len(pages) > 30
    return {page: Links(page.read_text()) for page in pages}


def test_the_site_has_the_pages(site):
    assert [name for name in PAGES if not (site / name).exists()] == []


def test_every_link_and_anchor_within_the_site_leads_somewhere(site, links):
    broken, seen = [], 0
    for page, found in links.items():
        for link in found.links | found.loaded:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme:
                continue
            target = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
            anchor = urllib.parse.unquote(parts.fragment)
            seen += 1
            known = links[target].anchors | {"only-light", "only-dark"} if anchor and target in links else {anchor}
            if not target.is_file() or anchor not in known:
                broken.append(f"{page.relative_to(site)}: {link}")
    assert seen > 1000
    assert broken == []


def test_no_page_loads_anything_from_another_place(links):
    assert [(page.name, link) for page, found in links.items() for link in found.loaded
            if urllib.parse.urlsplit(link).scheme not in ("", "data")] == []


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path):
    (tmp_path / "docs").mkdir()
    config = (ROOT / "mkdocs.yml").read_text()
    config = re.sub(r"^nav:.*", "", config, flags=re.S | re.MULTILINE)
    config = config.replace("docs_dir: build/site-source", f"docs_dir: {tmp_path / 'docs'}")
    config = re.sub(r"extra:\n.*?extra_css.*?\n", "", config, flags=re.S)
    (tmp_path / "mkdocs.yml").write_text(config)

    def build(text):
        (tmp_path / "docs" / "index.md").write_text(f"# A\n\n## A heading\n\n{text}\n")
        return subprocess.run([ROOT / "build" / "site-venv" / "bin" / "python", "-m", "mkdocs",
                               "build", "--strict", "--config-file", tmp_path / "mkdocs.yml",
                               "--site-dir", tmp_path / "site"], capture_output=True, text=True,
                              timeout=120, check=False)
    good, bad = build("[x](#a-heading)"), build("[x](#another) [y](other.md)")
    assert good.returncode == 0, good.stderr
    assert bad.returncode != 0
    assert "#another" in bad.stderr and "other.md" in bad.stderr


def test_a_word_is_found_without_a_server(open_page):
    page = open_page("index.html")
    page.get_by_role("textbox", name="Search").fill("ptrace_scope")
    results = page.locator(".md-search-result__article h1, .md-search-result__article h2")
    expect(results.filter(has_text="Troubleshooting by symptom").first).to_be_visible()


def test_pages_open_from_their_folder_and_ask_nobody(open_page, site):
    page = open_page(PAGES[0])
    for name in PAGES:
        page.goto((site / name).as_uri())
        expect(page.locator("h1").first).to_be_visible()


@pytest.mark.parametrize("theme, other", [("light", "dark"), ("dark", "light")])
def test_a_picture_has_the_theme_of_the_page(open_page, theme, other):
    page = open_page("docs/concepts.html", theme)
    shown = page.locator(f"img[src$='#only-{theme}']")
    assert shown.count() >= 5
    for i in range(shown.count()):
        expect(shown.nth(i)).to_be_visible()
        assert shown.nth(i).evaluate("image => image.naturalWidth") > 100
    for hidden in page.locator(f"img[src$='#only-{other}']").all():
        expect(hidden).to_be_hidden()


def test_the_switch_changes_the_theme_and_its_pictures(open_page):
    page = open_page("docs/concepts.html")
    page.locator("label[title='Dark']").click()
    expect(page.locator("img[src$='parts-dark.svg#only-dark']")).to_be_visible()
    expect(page.locator("img[src$='parts.svg#only-light']")).to_be_hidden()
