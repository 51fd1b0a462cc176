#!/usr/bin/env python
# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the locks from which the `distribution` module assembles Kafka and ZooKeeper.

For a maintainer, when a version is added. Maven resolves the runtime closure of a few root
artifacts; the lock lists every jar of it with its SHA-512, so that users neither resolve anything
nor trust anything but the lock. Needs `mvn` and network; no user ever runs this.

    scripts/update_locks.py                          # all versions below
    scripts/update_locks.py kafka_2.13-3.9.2         # one
    scripts/update_locks.py --check                  # exit 1 if a committed lock differs
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

LOCKS = Path(__file__).resolve().parent.parent / "roles" / "jvm_service" / "files" / "locks"
# Maven's own default is years behind and resolves three times slower.
COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


@dataclass(frozen=True)
class Product:
    """What one lock is made of: Maven adds the closure of the roots.

    `roots` are group:artifact:version, or group:artifact where the pom named by `managed_by`
    (group:artifact:version) states the version.
    """

    product: str
    version: str
    roots: tuple[str, ...]
    scala_version: str = ""
    managed_by: str = ""

    @property
    def name(self) -> str:
        """Name of the lock and of the archive's top directory, as upstream names its releases."""
        if self.scala_version:
            return f"{self.product}_{self.scala_version}-{self.version}"
        return f"{self.product}-{self.version}"


def kafka(version: str, extra: tuple[str, ...] = (), scala: str = "2.13") -> Product:
    """The broker, the command-line tools, Connect's runtime and MirrorMaker of one version."""
    artifacts = [
        f"kafka_{scala}",
        "kafka-tools",
        "connect-runtime",
        "connect-mirror",
        "connect-file",
        "connect-json",
    ]
    roots = tuple(f"org.apache.kafka:{artifact}:{version}" for artifact in artifacts)
    return Product("kafka", version, roots + extra, scala)


def zookeeper(version: str) -> Product:
    """The server, and what upstream's archive adds to it at the versions of its parent pom.

    Its Prometheus provider is left out: the registries do not have it for every version, and the
    JMX exporter serves both products. The server's pom calls these "provided" though it does not
    start without metrics and snappy; jetty and jackson are the AdminServer's, commons-cli and jline
    the tools'.
    """
    roots = (
        f"org.apache.zookeeper:zookeeper:{version}",
        "ch.qos.logback:logback-classic",
        "com.fasterxml.jackson.core:jackson-databind",
        "commons-cli:commons-cli",
        "io.dropwizard.metrics:metrics-core",
        "org.eclipse.jetty:jetty-server",
        "org.eclipse.jetty:jetty-servlet",
        "org.jline:jline",
        "org.xerial.snappy:snappy-java",
    )
    return Product("zookeeper", version, roots, managed_by=f"org.apache.zookeeper:parent:{version}")


PRODUCTS = (
    kafka("3.8.1"),
    kafka("3.9.2"),
    # 4.x leaves the choice of an SLF4J binding to the packager; upstream's archive has this one.
    kafka("4.3.1", extra=("org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",)),
    zookeeper("3.8.6"),
    zookeeper("3.9.5"),
)


def pom(product: Product) -> str:
    """A throwaway Maven project whose dependencies are the product's roots."""
    dependencies = "".join(dependency(root, "<scope>runtime</scope>") for root in product.roots)
    managed = ""
    if product.managed_by:
        bom = dependency(product.managed_by, "<type>pom</type><scope>import</scope>")
        managed = f"<dependencyManagement><dependencies>{bom}</dependencies></dependencyManagement>"
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>lock</groupId>"
        "<artifactId>lock</artifactId><version>1</version><packaging>pom</packaging>"
        f"{managed}<dependencies>{dependencies}</dependencies></project>"
    )


def dependency(coordinates: str, more: str) -> str:
    """One Maven dependency element of group:artifact[:version]."""
    tags = ("groupId", "artifactId", "version")
    parts = "".join(f"<{tag}>{text}</{tag}>" for tag, text in zip(tags, coordinates.split(":")))
    return f"<dependency>{parts}{more}</dependency>"


def resolve(product: Product, workdir: Path) -> list[dict]:
    """Let Maven copy the runtime closure and describe each jar, sorted by file name."""
    (workdir / "pom.xml").write_text(pom(product), encoding="utf-8")
    command = ["mvn", "-B", "-q", "-f", str(workdir / "pom.xml"), COPY_GOAL]
    command += ["-DincludeScope=runtime", "-Dmdep.useRepositoryLayout=true"]
    subprocess.run([*command, f"-DoutputDirectory={workdir / 'jars'}"], check=True)
    artifacts = [describe(jar, workdir / "jars") for jar in (workdir / "jars").rglob("*.jar")]
    return sorted(artifacts, key=_place)


def _place(artifact: dict) -> tuple[str, str, str]:
    """Where an artifact stands in the lock, the same on every machine."""
    return artifact["artifact"], artifact["group"], artifact.get("classifier", "")


def describe(jar: Path, root: Path) -> dict:
    """Read group, artifact, version and classifier off a jar's place in the repository layout."""
    *group, artifact, version, filename = jar.relative_to(root).parts
    content = jar.read_bytes()
    entry: dict[str, str | int] = {
        "group": ".".join(group),
        "artifact": artifact,
        "version": version,
    }
    classifier = filename[len(f"{artifact}-{version}") : -len(".jar")].lstrip("-")
    if classifier:
        entry["classifier"] = classifier
    entry["size_bytes"] = len(content)
    entry["sha512"] = hashlib.sha512(content).hexdigest()
    return entry


def render(product: Product, artifacts: list[dict]) -> str:
    """The lock's text: one line a jar, so that a new version reads well in a diff."""
    head = {"schema": 1, "name": product.name, "product": product.product}
    head["version"] = product.version
    if product.scala_version:
        head["scala_version"] = product.scala_version
    head["roots"] = list(product.roots)
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    jars = ",\n".join(f"    {json.dumps(artifact)}" for artifact in artifacts)
    return "{\n" + "\n".join(lines) + f'\n  "artifacts": [\n{jars}\n  ]\n}}\n'


def main() -> int:
    """Write or check the locks that were asked for; the exit status says if all agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="locks to write, default all")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {product.name for product in PRODUCTS}
    if unknown:
        parser.error("no such product in PRODUCTS: " + ", ".join(sorted(unknown)))
    differing = []
    for product in PRODUCTS:
        if arguments.names and product.name not in arguments.names:
            continue
        with tempfile.TemporaryDirectory() as workdir:
            artifacts = resolve(product, Path(workdir))
        text = render(product, artifacts)
        target = LOCKS / f"{product.name}.json"
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            differing.append(product.name)
            if not arguments.check:
                target.write_text(text, encoding="utf-8")
        size = sum(artifact["size_bytes"] for artifact in artifacts) / 1e6
        state = "differs" if product.name in differing else "unchanged"
        print(f"{product.name}: {len(artifacts)} jars, {size:.0f} MB, {state}", flush=True)
    return 1 if arguments.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
