# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Obtain a product's release archive on the controller: fetched, verified, cached.

The flow of the `distribution` action. An archive counts as complete only if the manifest beside it
names its SHA-512 and the recipe (lock and launcher, or the upstream digest) it was made from; the
manifest is written last, so whatever a killed run leaves is never taken for complete.
Private to this collection.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
from dataclasses import dataclass
from typing import IO, Any, Callable, Dict, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    PARTIAL,
    exclusive,
    flush,
    flush_directory,
    remove,
    remove_partials,
    sha512_of,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import masked_text
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import refusal
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import Progress
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply import (
    archive,
    download,
    ivy,
    jar_lock,
    tools,
)

PRODUCTS = ("kafka", "zookeeper")
SOURCES = ("maven", "archive")
# Part of every recipe: raise it when the way of assembling changes the bytes.
ASSEMBLY = "1"
_VERSION = re.compile(r"[0-9]+(\.[0-9]+){1,3}(-[A-Za-z0-9.]+)?")
_DIGEST = re.compile(r"[0-9a-f]{128}")
_FILES = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "roles", "jvm_service", "files"
)
LOCKS = os.path.normpath(os.path.join(_FILES, "locks"))
LAUNCHER = os.path.normpath(os.path.join(_FILES, "launcher"))


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "product": {"type": "str", "required": True, "choices": list(PRODUCTS)},
    "version": {"type": "str", "required": True},
    "scala_version": {"type": "str", "default": "2.13"},
    "source": {"type": "str", "default": "maven", "choices": list(SOURCES)},
    "url": {"type": "str"},
    "sha512": {"type": "str"},
    "mirror": {"type": "str"},
    "cache_dir": {"type": "path"},
    "java_home": {"type": "path"},
}


@dataclass(frozen=True)
class Request:
    """What is wanted. Paths are absolute; empty strings mean "not given"."""

    product: str
    version: str
    cache_dir: str
    scala_version: str = "2.13"
    source: str = "maven"
    url: str = ""
    sha512: str = ""
    mirror: str = ""
    java_home: str = ""

    @property
    def name(self) -> str:
        """Name of the release, as upstream names its top directory."""
        if self.product == "kafka":
            return f"kafka_{self.scala_version}-{self.version}"
        return f"{self.product}-{self.version}"


def request_from(
    arguments: Mapping[str, Any], environment: Optional[Mapping[str, str]] = None
) -> Request:
    """Make a Request of module arguments (of ARGUMENT_SPEC), defaults filled in."""
    given = {
        name: str(arguments.get(name) or spec.get("default", ""))
        for name, spec in ARGUMENT_SPEC.items()
    }
    given["cache_dir"] = os.path.abspath(
        os.path.expanduser(given["cache_dir"] or default_cache_dir(environment))
    )
    return Request(**given)


@dataclass(frozen=True)
class Result:
    """What the action returns. `state` is what was found before: complete, absent, damaged, outdated."""

    name: str
    archive: str
    sha512: str
    size_bytes: int
    changed: bool
    state: str
    fetched_jars: int = 0
    message: str = ""
    warnings: tuple = ()

    def to_dict(self) -> Dict[str, Any]:
        """As returned to the playbook, with the diff that follows from the state."""
        after = "complete" if self.changed else self.state
        return {
            "changed": self.changed,
            "name": self.name,
            "archive": self.archive,
            "sha512": self.sha512,
            "size_bytes": self.size_bytes,
            "state": self.state,
            "fetched_jars": self.fetched_jars,
            "msg": self.message,
            "warnings": list(self.warnings),
            "diff": {
                "before_header": self.archive,
                "after_header": self.archive,
                "before": f"{self.name}: {self.state}\n",
                "after": f"{self.name}: {after}\n",
            },
        }


def default_cache_dir(environment: Optional[Mapping[str, str]] = None) -> str:
    """KAFKAOPS_CACHE, else ~/.cache/kafkaops."""
    environment = os.environ if environment is None else environment
    return environment.get("KAFKAOPS_CACHE") or os.path.join(
        os.path.expanduser("~"), ".cache", "kafkaops"
    )


def check_request(request: Request) -> None:
    """Refuse what no network is needed to refuse. Raises ProblemError."""
    if request.product not in PRODUCTS:
        raise refusal(
            "product.unknown",
            f"product={request.product}",
            f"there is no such product (known: {', '.join(PRODUCTS)})",
            "take one of these",
        )
    if not _VERSION.fullmatch(request.version):
        raise refusal(
            "version.unknown",
            f"{request.product}_version={request.version}",
            "this is not a version number" f" (known: {', '.join(jar_lock.lock_names(LOCKS))})",
            "write it like 3.9.2",
        )
    if request.sha512 and not _DIGEST.fullmatch(request.sha512.lower()):
        raise refusal(
            "archive.checksum",
            f"distribution_sha512={request.sha512}",
            f"a SHA-512 has 128 hex digits, this has {len(request.sha512)} characters",
            "copy the whole digest from the .sha512 file beside the release",
        )
    wrong = ivy.mirror_problem(request.mirror)
    if wrong:
        raise refusal("fetch.login", f"distribution_mirror={request.mirror}", *wrong)


class _Archive:
    """The cached archive of a request, and the manifest beside it."""

    def __init__(self, path: str, recipe: Optional[str]) -> None:
        self.path = path
        self.recipe = recipe
        self.manifest_path = path + ".json"

    def state(self) -> Tuple[str, Dict[str, Any]]:
        """Return (state, manifest); reads the whole file, since half a file has the same name."""
        try:
            with open(self.manifest_path, encoding="utf-8") as stream:
                manifest = json.load(stream)
            size = os.path.getsize(self.path)
        except (FileNotFoundError, ValueError):
            return "absent", {}
        if manifest.get("size_bytes") != size or sha512_of(self.path) != manifest.get("sha512"):
            return "damaged", manifest
        if manifest.get("recipe") != self.recipe:
            return "outdated", manifest
        return "complete", manifest

    def store(self, name: str, write: Callable[[Any], None]) -> Dict[str, Any]:
        """Let `write(stream)` fill the archive; gives it its name when whole. Returns the manifest."""
        directory = os.path.dirname(self.path)
        partial = os.path.join(directory, PARTIAL + os.path.basename(self.path))
        try:
            with open(partial, "wb") as stream:
                write(stream)
                flush(stream)
            manifest = {
                "schema": 1,
                "name": name,
                "recipe": self.recipe,
                "sha512": sha512_of(partial),
                "size_bytes": os.path.getsize(partial),
            }
            # Never may an old manifest vouch for a new archive, not even for a moment.
            remove(self.manifest_path)
            os.replace(partial, self.path)
        finally:
            remove(partial)
        flush_directory(directory)
        write_atomically(self.manifest_path, json.dumps(manifest, indent=2) + "\n", mode=0o644)
        return manifest


def recipe_of(lock: Any, files: Any) -> str:
    """Digest of everything that decides an assembled archive's bytes."""
    digest = hashlib.sha512(f"assembly {ASSEMBLY}\n".encode())
    digest.update(lock.text)
    for path in sorted(files):
        content = files[path]
        digest.update(f"\n{path} {type(content).__name__}\n".encode())
        digest.update(content.encode() if isinstance(content, str) else content)
    return digest.hexdigest()


class MavenSupply:
    """Assembles the archive from published jars, as the lock lists them."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.lock = jar_lock.load_lock(LOCKS, request.name)
        self.files = tools.launcher_files(request.product, request.version, LAUNCHER)
        self.jars = ivy.JarCache(os.path.join(request.cache_dir, "jars"))
        path = os.path.join(request.cache_dir, "archives", f"{request.name}.tgz")
        self.archive = _Archive(path, recipe_of(self.lock, self.files))

    def forecast(self) -> str:
        """Say what would be fetched; reads the cache only."""
        absent, damaged = self.jars.missing(self.lock.jars)
        wanted = absent + damaged
        size = sum(jar.size_bytes for jar in wanted) / 1e6
        return (
            f"{self.lock.name}: would fetch {len(wanted)} of {len(self.lock.jars)} jars"
            f" ({size:.0f} MB) and assemble {self.archive.path}"
        )

    def supply(self, lock_descriptor: int, progress: Progress) -> Tuple[Dict[str, Any], int]:
        """Fetch what is missing and assemble; returns (manifest, jars fetched)."""
        os.makedirs(self.jars.root, exist_ok=True)
        fetched = 0
        if any(self.jars.missing(self.lock.jars)):
            fetched = ivy.fetch(
                self.lock,
                self.jars,
                self.request.mirror,
                ivy.find_java(self.request.java_home),
                lock_descriptor,
                progress,
            )
        libraries = tools.layout_of(self.request.product, self.request.version).libraries
        members = dict(self.files)
        members["lock.json"] = self.lock.text
        for jar in self.lock.jars:
            members[f"{libraries}/{jar.filename}"] = pathlib.Path(self.jars.path(jar))
        name = self.lock.name
        manifest = self.archive.store(
            name, lambda stream: archive.write_archive(stream, name, members)
        )
        return manifest, fetched


class ArchiveSupply:
    """Takes a binary release from a URL or a file, checked by its SHA-512."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.download = download.plan_download(
            request.product,
            request.version,
            request.scala_version,
            request.url,
            request.sha512,
            jar_lock.lock_names(LOCKS),
        )
        # The digest in the name keeps it apart from the assembled archive of the same release.
        file_name = f"{request.name}-{self.download.sha512[:12]}.tgz"
        path = os.path.join(request.cache_dir, "archives", file_name)
        self.archive = _Archive(path, self.download.sha512)

    def forecast(self) -> str:
        """Say what would be fetched."""
        url = masked_text(self.download.url)
        return f"{self.request.name}: would fetch {url} to {self.archive.path}"

    def supply(self, lock_descriptor: int, progress: Progress) -> Tuple[Dict[str, Any], int]:
        """Download and check; returns (manifest, 0)."""
        name = self.request.name

        def write(stream: IO[bytes]) -> None:
            download.download(self.download, name, stream, progress)
            stream.flush()
            download.check_binary_release(
                stream.name, self.request.product, self.request.version, self.request.scala_version
            )

        return self.archive.store(name, write), 0


def obtain(request: Request, progress: Progress, check_mode: bool = False) -> Result:
    """Make sure that the archive is in the cache; returns a Result.

    Offline if it is complete already. In check mode nothing is written and `message` says what
    would be fetched. Raises ProblemError.
    """
    check_request(request)
    supply = (MavenSupply if request.source == "maven" else ArchiveSupply)(request)
    try:
        return _obtain(request, supply, progress, check_mode)
    except OSError as error:
        raise refusal(
            "cache.unusable",
            f"kafkaops_cache={request.cache_dir}",
            f"{error.filename or request.cache_dir}: {error.strerror or error}",
            "make the directory writable with some 200 MB free, or name another one",
        ) from error


def _obtain(request: Request, supply: Any, progress: Progress, check_mode: bool) -> Result:
    state, manifest = supply.archive.state()
    if state == "complete":
        return _result(request, supply, manifest, state)
    if check_mode:
        return _result(request, supply, {}, state, changed=True, message=supply.forecast())
    os.makedirs(os.path.dirname(supply.archive.path), exist_ok=True)

    def waiting() -> None:
        progress.emit(f"{request.name}: another run fills the cache, waiting for it")

    with exclusive(os.path.join(request.cache_dir, ".lock"), waiting) as descriptor:
        # Whoever held the lock may have done the work.
        state, manifest = supply.archive.state()
        if state == "complete":
            return _result(request, supply, manifest, state)
        remove_partials(os.path.dirname(supply.archive.path))
        manifest, fetched = supply.supply(descriptor, progress)
    warnings: tuple[str, ...] = ()
    if state == "damaged":
        warnings = (
            f"{supply.archive.path} was cut off or altered since it was made;"
            " it has been made anew",
        )
    return _result(
        request,
        supply,
        manifest,
        state,
        changed=True,
        fetched=fetched,
        message=f"{request.name}: {manifest['size_bytes'] / 1e6:.0f} MB, {fetched} jars fetched",
        warnings=warnings,
    )


def _result(
    request: Request,
    supply: Any,
    manifest: Dict[str, Any],
    state: str,
    changed: bool = False,
    fetched: int = 0,
    message: str = "",
    warnings: Tuple[str, ...] = (),
) -> Result:
    return Result(
        name=request.name,
        archive=supply.archive.path,
        sha512=manifest.get("sha512", ""),
        size_bytes=manifest.get("size_bytes", 0),
        changed=changed,
        state=state,
        fetched_jars=fetched,
        message=message or f"{request.name}: complete in the cache",
        warnings=warnings,
    )
