# SPDX-License-Identifier: Apache-2.0
"""What a training program tells Rollcall about itself: its step and its phase.

    import rollcall

    for step, batch in enumerate(loader):
        rollcall.set_step(step)
        ...
        with rollcall.phase("validation"):
            validate(model)

A verdict then says "3 ranks have waited 12 s in step 812 (validation)". Without Rollcall's library in the
process, each call costs one branch. Works without the library and without PyTorch.
"""

import contextlib
import ctypes
import pathlib
import sysconfig

__all__ = ["is_watched", "library_path", "link_incidents", "phase", "set_phase", "set_step"]


def _find(name, *types):
    """The function of the preloaded library; None: the library is not in this process."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return None
    function.argtypes = types
    function.restype = None
    return function


_set_step = _find("rollcall_set_step", ctypes.c_uint64)
_set_phase = _find("rollcall_set_phase", ctypes.c_char_p)


def is_watched():
    """Whether Rollcall's library is in this process."""
    return _set_step is not None


def set_step(step):
    """Tells the current step of the training loop, as the program's logs count it. step: 0 or more."""
    if _set_step is not None:
        _set_step(max(int(step), 0))


def set_phase(name):
    """Tells the current phase, such as "validation"; "" or None: no phase. Of a longer one the
    words that fit into 47 bytes are kept."""
    if _set_phase is not None:
        _set_phase((name or "").encode("utf-8", "replace"))


@contextlib.contextmanager
def phase(name):
    """A phase for the body of a `with` statement. Afterwards there is no phase."""
    set_phase(name)
    try:
        yield
    finally:
        set_phase("")


def link_incidents(page=None, writers=()):
    """Puts each incident of this job into the experiment trackers that this process uses.

    The run of Weights & Biases gets a summary and an alert, the active run of MLflow tags, TensorBoard's
    SummaryWriters a text.

    page: address of the daemon's page, to link incidents there; without it the report's path is given.
    writers: SummaryWriters; without them, all of torch.utils.tensorboard and tensorboardX in this process.
    False: the job runs without `rollcall run`, and nothing happens. Never raises otherwise, and waits for nothing.
    """
    from rollcall import links
    return links.link_incidents(page, writers)


def library_path():
    """The path of librollcall.so of this installation, for LD_PRELOAD. Raises FileNotFoundError."""
    here = pathlib.Path(__file__).resolve()
    for base in (pathlib.Path(sysconfig.get_path("data")), *here.parents):
        for place in ("lib/rollcall/librollcall.so", "build/release/lib/librollcall.so"):
            if (base / place).exists():
                return str(base / place)
    raise FileNotFoundError("found no librollcall.so beside this package: install Rollcall's wheel")
