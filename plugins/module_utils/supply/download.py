# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A binary release from a URL or a file: downloaded, compared with its SHA-512, looked into.

Private to this collection.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import tarfile
import urllib.parse
from dataclasses import dataclass
from typing import IO, Any, Optional, Sequence

from ansible.module_utils.urls import open_url

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import url_problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.files import CHUNK_BYTES
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError, refusal
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import Progress

_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Download:
    """A file to get: `url` (http, https, ftp, file) or a path, and the digest it must have."""

    url: str
    sha512: str

    @property
    def path(self) -> str:
        """The local path, "" if it comes over the network."""
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme == "file":
            return urllib.parse.unquote(parts.path)
        return "" if parts.scheme else self.url


def plan_download(
    product: str, version: str, scala_version: str, url: str, sha512: str, locked: Sequence[str]
) -> Download:
    """Decide what to get, from what, before any network is used. Raises ProblemError.

    `locked` are the names that distribution_source=maven knows, for the refusal.
    """
    if not url:
        raise refusal(
            "archive.url",
            "distribution_url=",
            "distribution_source=archive needs the archive's URL or path",
            "set distribution_url and distribution_sha512, or take distribution_source=maven"
            f" (knows {', '.join(locked)})",
        )
    if not sha512:
        raise refusal(
            "version.unknown",
            f"{product}_version={version}",
            "distribution_source=archive needs the SHA-512 of this release"
            f" (without one, from jars: {', '.join(locked)})",
            "set distribution_sha512 to the digest that is published beside the release (.sha512)",
        )
    wrong = url_problem(url)
    if wrong:
        raise refusal("archive.url", f"distribution_url={url}", *wrong)
    _refuse_source_name(product, version, scala_version, url)
    return Download(url=url, sha512=sha512.lower())


def _refuse_source_name(product: str, version: str, scala_version: str, url: str) -> None:
    name = os.path.basename(urllib.parse.urlsplit(url).path)
    looks_like_source = "-src." in name or (
        product == "zookeeper" and name.startswith("apache-zookeeper-") and "-bin." not in name
    )
    if looks_like_source:
        raise _source_release(url, product, version, scala_version, "its name says so")


def _source_release(
    url: str, product: str, version: str, scala_version: str, why: str
) -> ProblemError:
    if product == "kafka":
        right = f"kafka_{scala_version}-{version}.tgz"
    else:
        right = f"apache-zookeeper-{version}-bin.tar.gz"
    return refusal(
        "archive.source_release",
        f"distribution_url={url}",
        f"this is the source release, which cannot be run ({why})",
        f"take the binary release, {right}",
    )


def download(wanted: Any, name: str, stream: IO[bytes], progress: Progress) -> None:
    """Copy `wanted` into `stream`, telling how far it is. Raises ProblemError if it is not whole."""
    digest = hashlib.sha512()
    received = 0
    try:
        source, announced = _open(wanted)
        with source:
            while True:
                chunk = source.read(CHUNK_BYTES)
                if not chunk:
                    break
                stream.write(chunk)
                digest.update(chunk)
                received += len(chunk)
                total = f" of {announced / 1e6:.0f}" if announced else ""
                progress.tell(f"{name}: {received / 1e6:.0f}{total} MB")
    except http.client.IncompleteRead as error:
        raise _truncated(wanted, received + len(error.partial), announced) from error
    except (OSError, http.client.HTTPException) as error:
        raise refusal(
            "fetch.failed",
            f"distribution_url={wanted.url}",
            f"it cannot be read ({error})",
            "check the address, the network and the proxy variables, and run again",
        ) from error
    if announced and received != announced:
        raise _truncated(wanted, received, announced)
    if digest.hexdigest() != wanted.sha512:
        raise refusal(
            "archive.checksum",
            f"distribution_sha512={wanted.sha512}",
            f"{wanted.url} ({received} bytes) has the SHA-512 {digest.hexdigest()}",
            "compare the digest with the one published beside the release; if it is right, the"
            " file was altered or cut off on its way",
        )


def _open(wanted: Any) -> Any:
    if wanted.path:
        return open(wanted.path, "rb"), os.path.getsize(wanted.path)
    response = open_url(wanted.url, timeout=_TIMEOUT_SECONDS, http_agent="kafkaops.cluster")
    return response, int(response.headers.get("Content-Length") or 0)


def _truncated(wanted: Any, received: int, announced: Optional[int]) -> ProblemError:
    return refusal(
        "archive.truncated",
        f"distribution_url={wanted.url}",
        f"the download broke off: {received} of {announced} bytes arrived",
        "run again; if it happens again, look at the proxy or the server",
    )


def check_binary_release(path: str, product: str, version: str, scala_version: str) -> None:
    """Refuse an archive that is not the binary release of this product and version.

    A digest only proves that the file is the one that was named, not that it was the right one.
    """
    try:
        with tarfile.open(path) as tar:
            names = tar.getnames()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise refusal(
            "archive.unreadable",
            f"distribution_url={path}",
            f"it is not a readable tar archive ({error})",
            "take the .tgz or .tar.gz of the binary release",
        ) from error
    inner = [name.split("/", 1)[1] for name in names if "/" in name.strip("/")]
    jars = [name for name in inner if name.startswith(("libs/", "lib/")) and name.endswith(".jar")]
    markers = [name for name in ("build.gradle", "pom.xml") if name in inner]
    if not jars:
        why = f"it has {markers[0]} and no jars" if markers else "it has no libs/*.jar or lib/*.jar"
        raise _source_release(os.path.basename(path), product, version, scala_version, why)
    main_jar = f"kafka_{scala_version}-{version}.jar"
    if product == "zookeeper":
        main_jar = f"zookeeper-{version}.jar"
    if main_jar not in [os.path.basename(name) for name in jars]:
        raise refusal(
            "archive.other_release",
            f"{product}_version={version}",
            f"the archive has no {main_jar}, so it is another product or version",
            "make version, distribution_url and distribution_sha512 agree",
        )
