# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a release archive whose bytes follow from its content alone.

Private to this collection. Same members, same bytes: on any machine, by any user, at any time and
with any zlib.
"""

from __future__ import annotations

import io
import os
import struct
import tarfile
import zlib
from typing import IO, Any, BinaryIO, cast

# 1980-01-01, the oldest time that zip knows, too: some tools dislike 1970.
_MTIME = 315532800
_BLOCK = 65535


class StoredGzip:
    """A gzip file whose blocks are stored, not deflated.

    Jars are compressed already, so deflating them again saves 4 % for seconds of CPU; and what
    deflate puts out differs between zlib and its forks, what this puts out does not.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._pending = bytearray()
        self._crc = 0
        self._size = 0
        # magic, deflate, no flags, no time, no extra flags, unknown system
        stream.write(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")

    def write(self, data: bytes) -> int:
        """Add `data`; returns its length."""
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        self._pending += data
        while len(self._pending) > _BLOCK:
            self._put(bytes(self._pending[:_BLOCK]), last=False)
            del self._pending[:_BLOCK]
        return len(data)

    def tell(self) -> int:
        """Bytes written so far, as tarfile wants to know."""
        return self._size

    def close(self) -> None:
        """Write the last block, checksum and size; the underlying stream stays open."""
        self._put(bytes(self._pending), last=True)
        self._stream.write(struct.pack("<II", self._crc, self._size & 0xFFFFFFFF))

    def _put(self, block: bytes, last: bool) -> None:
        self._stream.write(struct.pack("<BHH", int(last), len(block), len(block) ^ 0xFFFF))
        self._stream.write(block)


def write_archive(stream: IO[bytes], top: str, members: Any) -> None:
    """Write a .tgz with the one top directory `top`.

    `members` maps paths below it to bytes (a file), a str (the target of a symbolic link) or an
    os.PathLike (a file to copy). Files below bin/ are executable, if they are not links.
    """
    packed = StoredGzip(stream)
    directories = {top}
    for path in members:
        parts = path.split("/")[:-1]
        directories.update("/".join([top, *parts[: depth + 1]]) for depth in range(len(parts)))
    entries = dict.fromkeys(directories)
    entries.update({f"{top}/{path}": content for path, content in members.items()})
    with tarfile.open(fileobj=cast(BinaryIO, packed), mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(entries):
            _add(tar, name, entries[name])
    packed.close()


def _add(tar: tarfile.TarFile, name: str, content: Any) -> None:
    info = tarfile.TarInfo(name)
    info.mtime = _MTIME
    info.mode = 0o644
    if content is None:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(info)
    elif isinstance(content, str):
        info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, content
        tar.addfile(info)
    elif isinstance(content, bytes):
        if "/bin/" in name:
            info.mode = 0o755
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    else:
        info.size = os.path.getsize(content)
        with open(content, "rb") as source:
            tar.addfile(info, source)
