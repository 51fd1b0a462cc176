# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install a release archive on a managed host, so that no crash leaves half a release.

A release is unpacked beside its place and renamed when it is whole; its manifest lists every file.
A directory that is there already is never deleted, since a running process may use it:

* same archive, all files of the right size: nothing to do;
* same archive, files missing or cut off: only these are put back, each by a rename;
* another archive with the same jars (other launchers): its other files are exchanged the same way,
  so that a new release of this collection alone moves no path and asks for no restart;
* other jars under this name, or a directory that somebody else made: it is left alone and
  the release goes to NAME-DIGEST beside it.

Private to this collection. Python 3.9, standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tarfile
from dataclasses import dataclass
from typing import IO, Any, Dict, Iterator, Mapping, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    CHUNK_BYTES,
    PARTIAL,
    exclusive,
    flush,
    flush_directory,
    json_text,
    remove,
    remove_partials,
    sha512_of,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError, refusal
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply.installed import (
    MANIFEST,
    Found,
    beside,
    probe,
    same_kind,
)

# Directories whose content a running process loads; everything else serves people.
RUNTIME_DIRECTORIES = ("libs/", "lib/")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def check_name(name: str) -> None:
    """Refuse a name that would not be one directory below `releases`."""
    if not _NAME.fullmatch(name):
        raise refusal(
            "release.name",
            f"name={name}",
            "a release's name is one directory, of letters, digits, dots, dashes, underscores",
            "use the name that the distribution module returned",
        )


@dataclass(frozen=True)
class Installed:
    """What `install` did: where the release is, whether something changed, files exchanged in place."""

    path: str
    changed: bool
    before: str
    replaced: tuple = ()


def install(install_dir: str, name: str, sha512: str, archive: str) -> Installed:
    """Install `archive`; returns an Installed. Raises ProblemError; nothing half done is kept."""
    check_name(name)
    for directory in (install_dir, os.path.join(install_dir, "releases")):
        if not os.path.isdir(directory):
            os.makedirs(directory, exist_ok=True)
            os.chmod(directory, 0o755)
    with exclusive(os.path.join(install_dir, ".lock")):
        found = probe(install_dir, name, sha512)
        if found.state == "complete":
            return Installed(found.path, False, "complete")
        remove_partials(install_dir)
        partial = os.path.join(install_dir, f"{PARTIAL}{name}")
        # One descriptor for both: what was verified is what is unpacked, whatever the name means by then.
        with _open_verified(archive, sha512) as stream:
            try:
                manifest = unpack(stream, partial, name, sha512)
                return _put_in_place(partial, manifest, found)
            finally:
                remove(partial)


def _put_in_place(partial: str, manifest: Dict[str, Any], found: Found) -> Installed:
    sha512 = manifest["archive_sha512"]
    target = found.path
    same_jars = found.manifest.get("runtime_sha512") == manifest["runtime_sha512"]
    if found.state == "damaged" or (found.state == "other" and same_jars):
        replaced = _exchange_files(partial, target, manifest, found.manifest)
        return Installed(target, True, found.state, replaced)
    if found.state == "other":
        target = beside(target, sha512)
        if os.path.lexists(target):
            raise refusal(
                "release.occupied",
                f"path={target}",
                "something that is not a release of ours is in the place where this one belongs",
                "move it away and run again",
            )
    os.rename(partial, target)
    flush_directory(os.path.dirname(target))
    return Installed(target, True, "absent")


def _exchange_files(
    partial: str, target: str, manifest: Dict[str, Any], old_manifest: Dict[str, Any]
) -> Tuple[str, ...]:
    """Make `target` hold what `partial` holds, file by file; a reader sees the old one or the new.

    The manifest comes last: if this is killed, the next run finds the difference again.
    """
    replaced = []
    for name, entry in sorted(manifest["files"].items()):
        path = os.path.join(target, name)
        if _same_content(path, entry):
            continue
        _make_directory(target, os.path.dirname(name))
        if os.path.isdir(path) and not os.path.islink(path):
            remove(path)
        os.replace(os.path.join(partial, name), path)
        replaced.append(name)
    for name in sorted(set(old_manifest.get("files", {})) - set(manifest["files"])):
        remove(os.path.join(target, name))
        replaced.append(name)
    write_atomically(os.path.join(target, MANIFEST), json_text(manifest), mode=0o644)
    return tuple(replaced)


def _same_content(path: str, entry: Mapping[str, Any]) -> bool:
    if not same_kind(path, entry):
        return False
    return "link" in entry or sha512_of(path) == entry["sha512"]


@contextlib.contextmanager
def _open_verified(archive: str, sha512: str) -> Iterator[IO[bytes]]:
    """Yield the archive, open at its beginning, if its content has this SHA-512."""
    try:
        stream = open(archive, "rb")
    except FileNotFoundError as error:
        raise refusal(
            "archive.missing",
            f"archive={archive}",
            "there is no such file on this host",
            "copy it here first; state=probe tells beforehand whether it is needed",
        ) from error
    with stream:
        digest = hashlib.sha512()
        for chunk in iter(lambda: stream.read(CHUNK_BYTES), b""):
            digest.update(chunk)
        actual = digest.hexdigest()
        if actual != sha512:
            raise refusal(
                "archive.checksum",
                f"archive={archive}",
                f"its SHA-512 is {actual}, and {sha512} was announced",
                "it was cut off or altered on its way; copy it again",
            )
        stream.seek(0)
        yield stream


def unpack(archive: Any, target: str, name: str, sha512: str) -> Dict[str, Any]:
    """Unpack the one top directory of an open archive as `target` and write its manifest; returns that.

    Links are made after all files, so no member can be written through one.
    """
    os.mkdir(target)
    os.chmod(target, 0o755)
    files, links, tops = {}, {}, set()
    try:
        with tarfile.open(fileobj=archive) as tar:
            for member in tar:
                top, inner = _split(archive.name, member)
                tops.add(top)
                if len(tops) > 1:
                    raise _unsafe(archive.name, f"it has several top directories ({sorted(tops)})")
                if member.isdir():
                    _make_directory(target, inner)
                elif member.issym():
                    links[inner] = _inner_link(archive.name, member, inner)
                elif member.isfile() and inner and inner not in files:
                    _make_directory(target, os.path.dirname(inner))
                    files[inner] = _write_member(tar, member, os.path.join(target, inner))
                else:
                    raise _unsafe(
                        archive.name, f"member {member.name} is not a plain file, or is there twice"
                    )
    except (tarfile.TarError, EOFError) as error:
        raise _unsafe(archive.name, f"it cannot be read to its end ({error})") from error
    for inner, destination in links.items():
        _make_directory(target, os.path.dirname(inner))
        os.symlink(destination, os.path.join(target, inner))
        files[inner] = {"link": destination}
    manifest = {
        "schema": 1,
        "name": name,
        "archive_sha512": sha512,
        "runtime_sha512": runtime_digest(files),
        "files": files,
    }
    write_atomically(os.path.join(target, MANIFEST), json_text(manifest), mode=0o644)
    return manifest


def runtime_digest(files: Any) -> str:
    """Digest of what a running process loads: names and digests of the jars."""
    digest = hashlib.sha512()
    for name in sorted(files):
        if name.startswith(RUNTIME_DIRECTORIES):
            digest.update(f"{name} {files[name].get('sha512', '')}\n".encode())
    return digest.hexdigest()


def _split(archive: str, member: tarfile.TarInfo) -> Tuple[str, str]:
    """Return (top directory, path below it) of a member; refuses what leaves the top directory."""
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts or not parts:
        raise _unsafe(archive, f"member {member.name} leads out of it")
    if len(parts) == 1 and not member.isdir():
        raise _unsafe(archive, f"member {member.name} lies beside the top directory")
    return parts[0], "/".join(parts[1:])


def _inner_link(archive: str, member: tarfile.TarInfo, inner: str) -> str:
    destination = os.path.normpath(os.path.join(os.path.dirname(inner), member.linkname))
    if os.path.isabs(member.linkname) or destination.split("/")[0] == "..":
        raise _unsafe(archive, f"link {member.name} leads out of it")
    return member.linkname


def _make_directory(target: str, inner: str) -> None:
    """Create a directory with mode 0755, whatever the umask of the account is."""
    path = target
    for part in inner.split("/"):
        path = os.path.join(path, part) if part else path
        if not os.path.isdir(path):
            os.mkdir(path)
            os.chmod(path, 0o755)


def _write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> Dict[str, Any]:
    digest = hashlib.sha512()
    content = tar.extractfile(member)
    if content is None:
        raise ValueError(f"{member.name} is not a file")  # only files get here
    with content as source, open(path, "xb") as stream:
        for chunk in iter(lambda: source.read(CHUNK_BYTES), b""):
            stream.write(chunk)
            digest.update(chunk)
        os.fchmod(stream.fileno(), 0o755 if member.mode & 0o100 else 0o644)
        flush(stream)
    return {"size_bytes": member.size, "sha512": digest.hexdigest()}


def _unsafe(archive: str, reason: str) -> ProblemError:
    return refusal(
        "archive.unsafe",
        f"archive={archive}",
        reason,
        "take the published binary release; nothing was installed",
    )
