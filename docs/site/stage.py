# SPDX-License-Identifier: Apache-2.0
"""Copies what the site shows into one folder, for MkDocs:  stage.py FOLDER SHIM

The pages lie there as in the repository, so that their links hold. Three things differ. A picture
NAME.png with a NAME-dark.png beside it becomes two pictures, one for each theme. A drawing NAME.svg
with colours for both themes becomes NAME.svg and NAME-dark.svg. A source file that a page links to
gets the suffix .txt, so that browsers show it. Fails if a page links to a file that is not there.
"""
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").glob("*/README.md")]
ASSETS = ["docs/site/site.css"]
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+?)(\.png|\.svg)\)")
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
BLOCK = re.compile(r"(^```.*?^```)", re.S | re.MULTILINE)
DARK_COLOURS = re.compile(r"@media \(prefers-color-scheme: dark\) \{(.*?)\n *\}\n", re.S)


def both_themes(folder, found):
    """The Markdown of a picture: two of them if there is one for the dark theme."""
    words, name, suffix = found.groups()
    dark = f"{name}-dark{suffix}"
    if not (folder / dark).exists() and suffix != ".svg":
        return found[0]
    return (f"![{words}]({name}{suffix}#only-light)"
            f"![{words}]({dark}#only-dark)")


def stage_picture(source, target):
    """Copies a picture. A drawing becomes two, each with the colours of one theme."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix != ".svg":
        shutil.copyfile(source, target)
        return
    text = source.read_text()
    assert DARK_COLOURS.search(text), f"{source} has no colours for the dark theme"
    target.write_text(DARK_COLOURS.sub("", text))
    target.with_stem(f"{target.stem}-dark").write_text(DARK_COLOURS.sub(r"\1\n", text))


def stage_page(page, target):
    """Copies a page, and the source files that it links to."""
    folder, out = page.parent, target / page.parent.relative_to(ROOT)

    def link(found):
        name = found[2]
        path = (folder / name).resolve()
        if re.match(r"\w+:", name) or path.suffix in (".md", ".png", ".svg") or path.is_dir():
            return found[0]
        copy = target / path.relative_to(ROOT)
        copy = copy.with_name(copy.name + ".txt")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        return f"{found[1]}{name}.txt{found[3]}"

    parts = BLOCK.split(page.read_text())
    for i in range(0, len(parts), 2):  # the others are blocks of code
        parts[i] = LINK.sub(link, PICTURE.sub(lambda found: both_themes(folder, found), parts[i]))
    out.mkdir(parents=True, exist_ok=True)
    (out / page.name).write_text("".join(parts))


def main(folder, shim):
    target = ROOT / folder
    shutil.rmtree(target, ignore_errors=True)
    for page in PAGES:
        stage_page(page, target)
    for picture in sorted((ROOT / "docs" / "images").glob("*.*")):
        stage_picture(picture, target / picture.relative_to(ROOT))
    for asset in ASSETS:
        copy = target / asset
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / asset, copy)
    shutil.copyfile(shim, target / "docs" / "site" / "iframe-worker.js")


if __name__ == "__main__":
    main(*sys.argv[1:])
