# SPDX-License-Identifier: Apache-2.0
"""Reads the file with the token to show the daemon, under the rule of base/secret_file.cc: a token that others can read
is not used. docs/security.md explains the rule."""

import os
import stat

MAX_TOKEN_BYTES = 6144
OTHERS = stat.S_IROTH | stat.S_IWOTH
GROUP = stat.S_IRGRP | stat.S_IWGRP


class TokenFileError(Exception):
    """There is no token to use. The message says why, and what to type."""


def read_token(path):
    try:
        with open(path, "rb") as file:
            check_readers(path, os.fstat(file.fileno()))
            content = file.read(MAX_TOKEN_BYTES + 64)
    except OSError as error:
        raise TokenFileError(f"cannot read the token file {path}: {error.strerror}") from error
    return check_token(path, content.strip())


def check_readers(path, status):
    for_group = status.st_mode & GROUP == stat.S_IRGRP and status.st_uid == 0
    is_open = status.st_mode & OTHERS != 0
    if is_in_volume_of_kubernetes(path) or (not is_open and (status.st_mode & GROUP == 0 or for_group)):
        return
    who, classes = ("every user of this host", "go") if is_open else ("a group of users", "g")
    raise TokenFileError(f"{who} can read the token in {path}; type: chmod {classes}-rwx {path}")


def is_in_volume_of_kubernetes(path):
    """Kubernetes mounts secrets so that a new version appears at once: each file is a link to ..data/FILE."""
    return os.path.islink(path) and os.readlink(path).startswith("..data/")


def check_token(path, token):
    if 0 < len(token) <= MAX_TOKEN_BYTES and all(0x21 <= byte <= 0x7e for byte in token):
        return token.decode("ascii")
    problem = "does not hold exactly one token" if token else "is empty"
    raise TokenFileError(f"{path} {problem}; a client's file holds one line, which `rollcall token new` prints")
