"""Files that somebody else may have written: read without waiting for anybody, and whose they are.

A kernel out of the cache runs with the author's rights, so what another user could have put there
is not taken. The superuser could do so anywhere, and counts as nobody else.
"""

from __future__ import annotations

import importlib
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

_SUPERUSER = 0
"""Who can write every file anyhow, so one more that is his is trusted no less."""


def read_regular(path: Path) -> tuple[bytes, os.stat_result]:
    """The content of a file and its state. OSError if there is none, or it is no regular one: a
    pipe or a device may keep its reader waiting for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is no regular file")
        return file.read(), status


def parse_json(content: bytes | str) -> Any:
    """What a JSON text says. ValueError where it is none, or nests too deep to be read."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it nests too deep") from None


def make_own_folder(path: Path) -> None:
    """Makes a folder, where it is missing, that nobody else may write. OSError as usual."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def who_may_write(status: os.stat_result) -> str | None:
    """Who else may change a file or put others into a folder, in words; None if nobody."""
    if status.st_uid not in (os.geteuid(), _SUPERUSER):
        return f"it belongs to user {status.st_uid}"
    # In a folder with the sticky bit, as /tmp, each may touch their own entries only.
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return None
    if status.st_mode & stat.S_IWOTH:
        return "every user may write it"
    if status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid):
        return f"group {status.st_gid} may write it"
    return None


def _is_private_group(number: int) -> bool:
    """Whether a group is this user's alone, as where each user has one and the umask is 002."""
    groups, users = importlib.import_module("grp"), importlib.import_module("pwd")
    with suppress(KeyError):
        group, user = groups.getgrgid(number), users.getpwuid(os.geteuid())
        return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
    return False


def untrusted_folder(path: Path) -> str | None:
    """Why what lies in a folder may be somebody else's, None if it is not: the folder itself and
    all above it decide. A folder that is missing is made by us."""
    for folder in (path, *path.parents):
        try:
            status = folder.stat()
        except OSError:
            continue
        wrong = who_may_write(status)
        if wrong is not None:
            return f"{folder}: {wrong}"
    return None
