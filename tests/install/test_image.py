# SPDX-License-Identifier: Apache-2.0
"""The container image of deploy/package.sh, unpacked and run where there is nothing else: no shell, no
libc, no /etc, as its own user."""
import gzip
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import time

import pytest

pytestmark = pytest.mark.long

PACKAGES = pathlib.Path(os.environ["ROLLCALL_PACKAGES"])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine)
USER = 65532
# Ends when the daemon has met the agent.
ASK = """import time, urllib.request
end = time.monotonic() + 60
while True:
    try:
        page = urllib.request.urlopen("http://127.0.0.1:7656/metrics").read().decode()
        if "\\nrollcall_agents_connected 1\\n" in page:
            break
    except OSError as error:
        page = str(error)
    assert time.monotonic() < end, page
    time.sleep(0.2)
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=180,
                          **options)


def one(pattern):
    found, = PACKAGES.glob(pattern)
    return found


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layout")
    with tarfile.open(one(f"rollcall-image-*-{ARCHITECTURE}.oci.tar")) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def image(layout):
    """The configuration of the image, and the files of its one layer."""

    def blob(descriptor):
        data = (layout / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
        assert f"sha256:{hashlib.sha256(data).hexdigest()}" == descriptor["digest"]
        return data

    entry, = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(entry))
    layer, = manifest["layers"]
    configuration = json.loads(blob(manifest["config"]))
    digest = hashlib.sha256(gzip.decompress(blob(layer))).hexdigest()
    assert configuration["rootfs"]["diff_ids"] == [f"sha256:{digest}"]
    return configuration, layout / "blobs" / layer["digest"].replace(":", "/")


@pytest.fixture
def container(image, tmp_path):
    """A function that starts a command in a fresh root of the image, in namespaces of its own."""
    root = tmp_path / "root"
    with tarfile.open(image[1]) as layer:
        layer.extractall(root)
    for folder in ("proc", "dev/shm", "volume"):  # as a container runtime does
        (root / folder).mkdir(parents=True)
    os.chown(root / "volume", USER, USER)
    tmp_path.chmod(0o755)

    def start(*commands, outside=""):
        """Runs the commands at once, in the container. The result is that of the last, or of `outside`,
        which has the network and the processes of the container, but the files of this machine."""
        enter = f"env -i PATH=/usr/bin /usr/sbin/chroot --userspec={USER}:{USER} {root} "
        lines = [f"mount -t proc proc {root}/proc", f"mount -t tmpfs -o mode=1777 tmpfs {root}/dev/shm",
                 "ip link set lo up"]
        lines += [f"{enter}{command} > {tmp_path}/{index}.out 2>&1 &"
                  for index, command in enumerate(commands if outside else commands[:-1])]
        lines += [f"exec {outside or enter + commands[-1]}"]
        return run("unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "bash", "-ec",
                   "\n".join(lines))

    return root, start


def test_the_image_runs_as_nobody_and_says_what_it_is(image):
    configuration, _ = image
    assert configuration["config"]["User"] == f"{USER}:{USER}"
    assert configuration["config"]["Cmd"] == ["rollcall", "--help"]
    assert set(configuration["config"]["ExposedPorts"]) == {"7655/tcp", "7656/tcp"}
    labels = configuration["config"]["Labels"]
    assert labels["org.opencontainers.image.version"] == "0.1.0"
    assert re.fullmatch("[0-9a-f]{40}", labels["org.opencontainers.image.revision"])
    assert (configuration["os"], configuration["architecture"]) == (
        "linux", ARCHITECTURE)


def test_the_layer_holds_nothing_but_rollcall(image):
    with tarfile.open(image[1]) as layer:
        entries = {entry.name: entry for entry in layer}
    programs = {name for name in entries if name.startswith("usr/bin/")}
    assert programs == {f"usr/bin/{name}" for name in ("rollcall", "rollcalld", "rollcall-agent",
                                                      "rollcall-probe")}
    assert not [name for name in entries if name.startswith(("etc", "bin", "lib", "usr/lib/x86"))]
    assert {"usr/share/doc/rollcall/LICENSE", "usr/share/doc/rollcall/THIRD_PARTY_NOTICES",
            "usr/share/doc/rollcall/sbom.cdx.json"} <= set(entries)
    own = {name for name, entry in entries.items() if (entry.uid, entry.gid) != (0, 0)}
    assert own == {"var/lib/rollcall"}
    # Only root can write to what others run.
    assert [name for name, entry in entries.items() if entry.mode & 0o022] == ["tmp"]


def test_the_archive_for_docker_has_the_same_layer_and_a_name(image):
    with tarfile.open(one(f"rollcall-image-*-{ARCHITECTURE}.docker.tar.gz")) as archive:
        entry, = json.load(archive.extractfile("manifest.json"))
        assert entry["RepoTags"] in (["rollcall:0.1.0"], ["docker.io/library/rollcall:0.1.0"])
        layer, = entry["Layers"]
        digest = hashlib.sha256(archive.extractfile(layer).read()).hexdigest()
    assert image[0]["rootfs"]["diff_ids"] == [f"sha256:{digest}"]


def test_the_same_tree_gives_the_same_bytes(tmp_path):
    made = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        result = run(SOURCE / "deploy" / "package" / "image.sh", PACKAGES / "tree", "0.1.0", ARCHITECTURE,
                     tmp_path / name, env={**os.environ, "SOURCE_DATE_EPOCH": "1767225600"})
        assert result.returncode == 0, result.stderr
        made.append({file.name: hashlib.sha256(file.read_bytes()).hexdigest()
                     for file in (tmp_path / name).iterdir()})
        time.sleep(1.1)  # the clock must not show
    assert made[0] == made[1] and len(made[0]) == 2


@needs_root
def test_an_init_container_puts_the_library_into_a_volume_and_jobs_load_it(container):
    root, start = container
    result = start("rollcall install-library /volume")
    assert (result.returncode, result.stdout) == (0, "/volume/librollcall.so\n"), result.stderr
    library = root / "volume" / "librollcall.so"
    assert library.stat().st_uid == USER
    script = "import ctypes; print(hasattr(ctypes.CDLL(None), 'rollcall_set_step'))"
    job = run(sys.executable, "-c", script, env={"LD_PRELOAD": str(library)})
    assert (job.stdout, job.stderr) == ("True\n", "")


@needs_root
def test_daemon_and_agent_run_where_there_is_nothing_else(container):
    root, start = container
    script = root.parent / "ask.py"
    script.write_text(ASK)
    result = start("rollcalld --http=127.0.0.1:7656 --report-dir=/var/lib/rollcall/reports",
                   "rollcall-agent --daemon=127.0.0.1:7655", outside=f"{sys.executable} {script}")
    logs = "".join(file.read_text() for file in sorted(root.parent.glob("*.out")))
    assert result.returncode == 0, result.stderr + logs
    asked = start("rollcall status --daemon=127.0.0.1:7655")
    assert asked.returncode == 1 and "cannot reach the daemon" in asked.stderr
