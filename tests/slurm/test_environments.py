# SPDX-License-Identifier: Apache-2.0
"""The modulefiles, under Lmod, and the hook of enroot: what they make of an environment."""
import os
import re
import shutil
import subprocess

import pytest
from cluster import BUILD, SLURM

LMOD = "/usr/share/lmod/lmod/libexec/lmod"
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"

needs_lmod = pytest.mark.skipif(not os.path.exists(LMOD), reason="needs lmod: deploy/setup_parts.sh slurm")


def load_module(tmp_path, kind, *commands, library=None):
    """What LD_PRELOAD is after the commands of Lmod. kind: the suffix of the modulefile."""
    folder = tmp_path / "modulefiles"
    folder.mkdir(exist_ok=True)
    text = (SLURM / "modulefiles" / f"rollcall{kind}").read_text()
    library = library or BUILD / "lib" / "librollcall.so"
    assert "/usr/lib/rollcall/librollcall.so" in text
    (folder / f"rollcall{kind}").write_text(text.replace("/usr/lib/rollcall/librollcall.so", str(library)))
    script = f'module() {{ eval "$({LMOD} bash "$@")"; }}\nmodule use {folder}\n'
    script += "\n".join(commands) + '\necho "preload=$LD_PRELOAD"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120,
                          env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LD_PRELOAD": JEMALLOC})
    return re.search(r"^preload=(.*)$", done.stdout, re.MULTILINE)[1], done.stderr


@needs_lmod
@pytest.mark.parametrize("kind", [".lua", ""], ids=["lua", "tcl"])
def test_the_module_preloads_the_library_and_takes_it_out_again(tmp_path, kind):
    library = BUILD / "lib" / "librollcall.so"
    assert load_module(tmp_path, kind, "module load rollcall")[0] == f"{library}:{JEMALLOC}"
    assert load_module(tmp_path, kind, "module load rollcall", "module unload rollcall")[0] == JEMALLOC


@needs_lmod
@pytest.mark.parametrize("kind", [".lua", ""], ids=["lua", "tcl"])
def test_the_module_says_that_a_host_has_no_library(tmp_path, kind):
    preload, said = load_module(tmp_path, kind, "module load rollcall", library="/no/such/librollcall.so")
    assert preload == JEMALLOC
    assert "this host has no /no/such/librollcall.so" in said


def hook(tmp_path, environ, root_files=(), library=None, **job):
    """The container's environment after the hook of enroot."""
    (tmp_path / "environ").write_text(environ)
    for name in root_files:
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).touch()
    text = (SLURM / "enroot" / "hooks.d" / "50-rollcall.sh").read_text()
    line = "library=/usr/lib/rollcall/librollcall.so"
    assert line in text
    script = tmp_path / "hook.sh"
    script.write_text(text.replace(line, f"library={library or BUILD / 'lib' / 'librollcall.so'}"))
    done = subprocess.run(["sh", script], capture_output=True, text=True, timeout=120,
                          env={"PATH": os.environ["PATH"], "ENROOT_ENVIRON": str(tmp_path / "environ"),
                               "ENROOT_ROOTFS": str(tmp_path / "root"), **job})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return (tmp_path / "environ").read_text()


LIBRARY = BUILD / "lib" / "librollcall.so"


@pytest.mark.parametrize("before,after", [
    ("", f"LD_PRELOAD={LIBRARY}\n"),
    ("A=1\nB=two words\n", f"A=1\nB=two words\nLD_PRELOAD={LIBRARY}\n"),
    ("LD_PRELOAD=/opt/libjemalloc.so\nA=1\n", f"A=1\nLD_PRELOAD={LIBRARY}:/opt/libjemalloc.so\n"),
    ("LD_PRELOAD=/old.so\nLD_PRELOAD=/new.so\n", f"LD_PRELOAD={LIBRARY}:/new.so\n"),
    (f"LD_PRELOAD=/a.so:{LIBRARY}\n", f"LD_PRELOAD=/a.so:{LIBRARY}\n"),
    ("ROLLCALL=0\n", "ROLLCALL=0\n"),
], ids=["nothing", "others", "the image's", "the last counts", "there already", "off in the image"])
def test_the_hook_preloads_beside_what_the_image_preloads(tmp_path, before, after):
    assert hook(tmp_path, before) == after


def test_the_hook_obeys_the_job(tmp_path):
    assert hook(tmp_path, "A=1\n", ROLLCALL="off") == "A=1\n"
    assert hook(tmp_path, "A=1\n", ROLLCALL="observe") == f"A=1\nLD_PRELOAD={LIBRARY}\n"


def test_the_hook_leaves_images_of_musl_alone(tmp_path):
    assert hook(tmp_path, "A=1\n", root_files=["lib/ld-musl-x86_64.so.1"]) == "A=1\n"


def test_the_hook_does_nothing_where_the_library_is_missing(tmp_path):
    assert hook(tmp_path, "A=1\n", library="/no/such/librollcall.so") == "A=1\n"


def test_the_mount_names_the_folder_of_the_library():
    fields = (SLURM / "enroot" / "mounts.d" / "50-rollcall.fstab").read_text().split()
    assert fields[:3] == ["/usr/lib/rollcall", "/usr/lib/rollcall", "none"]
    assert {"bind", "ro", "nosuid", "nodev", "nofail"} <= set(fields[3].split(","))


def test_the_plugin_compiles_without_a_warning(tmp_path):
    if not os.path.exists("/usr/include/slurm/spank.h"):
        pytest.skip("needs slurm/spank.h: deploy/setup_parts.sh slurm")
    done = subprocess.run([SLURM / "build.sh", tmp_path / "plugin.so"], capture_output=True, text=True,
                          env={**os.environ, "CFLAGS": "-Werror -Wconversion"}, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_headers_the_build_says_what_to_install(tmp_path):
    empty = shutil.copytree(SLURM, tmp_path / "slurm")
    done = subprocess.run([empty / "build.sh"], capture_output=True, text=True, timeout=120,
                          env={"PATH": os.environ["PATH"], "CC": "false"})
    assert done.returncode == 1
    assert "cannot find slurm/spank.h" in done.stderr and "apt-get install" in done.stderr
