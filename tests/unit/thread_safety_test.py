# SPDX-License-Identifier: Apache-2.0
"""Lets clang check that each access to what a mutex guards holds the mutex (-Wthread-safety).

A file can have findings if it, or a header that it includes, includes base/mutex.h. Clang only parses the
files. One precompiled header for all of them makes that three times faster.

THREAD_SAFETY_BUILD names a configured build folder in which the headers of Protobuf are generated.
"""

import collections
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^#include ([<"].+[>"])', re.MULTILINE)
MUTEX = ROOT / "base/mutex.h"
UNCHECKED = re.compile(r"\b(std::\w*mutex|std::condition_variable\w*|absl::(Mutex|CondVar|Notification)) \w+[;,{ ]")
CHECKS = ["-fsyntax-only", "-Wthread-safety", "-Werror=thread-safety"]


def clang(*arguments, **options):
    return subprocess.run(["clang++", *arguments], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)


def own(name):
    """The project's file of an #include; None: it is another's."""
    path = ROOT / name[1:-1]
    return path if name[0] == '"' and path.is_file() else None


@functools.cache
def included(path):
    return INCLUDE.findall(path.read_text())


def near(path):
    """A file, and the project's files that it includes itself."""
    return {path, *filter(None, map(own, included(path)))}


def product(*patterns):
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, text=True, check=True,
                            stdout=subprocess.PIPE).stdout.split()
    return [ROOT / name for name in listed if not name.startswith(("tests/", "interpose/"))]


def checked():
    return [path for path in product("*.cc") if any(MUTEX in near(file) for file in near(path))]


def flags_of(build):
    """What is defined and where headers lie, for all files of the product together."""
    flags = ["-std=c++17", f"-I{ROOT}"]
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if "/tests/" in entry["file"] or not entry["file"].endswith((".cc", ".cxx")):
            continue
        words = shlex.split(entry["command"])
        for word, following in zip(words, words[1:]):
            if word == "-isystem":
                flags.append(f"-isystem{following}")
            elif word.startswith(("-D", "-I")):
                flags.append(word)
    return list(dict.fromkeys(flags))


def reached(path, known):
    """Adds to `known` all of the project's files that a file includes, also through others."""
    if path not in known:
        known.add(path)
        for file in near(path):
            reached(file, known)
    return known


def precompile(files, flags, folder):
    """A header of what many of the files include from elsewhere. Returns the flags that use it."""
    uses = collections.Counter()
    for path in files:
        names = {name for file in reached(path, set()) for name in included(file)}
        uses.update(name for name in names if own(name) is None)
    header, compiled = folder / "common.h", folder / "common.pch"
    header.write_text("".join(f"#include {name}\n" for name in sorted(uses)
                              if uses[name] * 10 > len(files)))
    result = clang(*flags, "-x", "c++-header", "-fpch-instantiate-templates", header, "-o", compiled)
    assert result.returncode == 0, result.stdout
    return ["-include-pch", str(compiled)]


def test_every_access_holds_its_mutex(tmp_path):
    files = checked()
    assert len(files) > 50
    flags = flags_of(pathlib.Path(os.environ["THREAD_SAFETY_BUILD"]))
    flags += precompile(files, flags, tmp_path)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        results = list(threads.map(lambda path: clang(*flags, *CHECKS, path), files))
    findings = [result.stdout for result in results if result.returncode != 0]
    assert not findings, "\n".join(findings)


def test_no_mutex_is_of_a_kind_that_clang_does_not_check():
    files = [path for path in product("*.h", "*.cc") if path != MUTEX]
    assert [str(path) for path in files if UNCHECKED.search(path.read_text())] == []


CLASS = """
#include "base/mutex.h"
class Counter {
 public:
  int Get() {
    %s
    return count_;
  }

 private:
  rollcall::Mutex mutex_;
  rollcall::Condition changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};
"""


@pytest.mark.parametrize("statements, is_right", [
    ("const rollcall::MutexLock lock(mutex_);", True),
    ("", False),
    ("rollcall::MutexLock lock(mutex_); lock.Unlock();", False),
    ("rollcall::MutexLock lock(mutex_); lock.Unlock(); lock.Lock();", True),
    ("rollcall::MutexLock lock(mutex_); while (count_ == 0) changed_.Wait(mutex_);", True),
    ("changed_.Wait(mutex_); const rollcall::MutexLock lock(mutex_);", False),
    ("const rollcall::MutexLock lock(mutex_), again(mutex_);", False),
])
def test_clang_finds_what_is_wrong(statements, is_right):
    result = clang("-std=c++17", f"-I{ROOT}", *CHECKS, "-x", "c++", "-", input=CLASS % statements)
    assert (result.returncode == 0) == is_right, result.stdout
    assert is_right or "[-Werror,-Wthread-safety-analysis]" in result.stdout
