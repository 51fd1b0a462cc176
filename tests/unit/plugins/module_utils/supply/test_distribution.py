# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Obtaining an archive, with small jars and a stand-in for Java and Ivy that copies from a folder."""

import gzip
import hashlib
import json
import os
import stat
import tarfile

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import exclusive, sha512_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import Progress
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply import distribution, ivy

JARS = {f"jar{number}": bytes([number]) * (number * 70000) for number in range(1, 6)}

# Reads the ivy.xml it is given, as Ivy does, and puts the jars of its "repository" into the cache.
FAKE_JAVA = """\
#!/usr/bin/env python3
import os, sys, xml.etree.ElementTree as E
arguments = dict(zip(sys.argv[1:], sys.argv[2:]))
root = os.environ["FAKE_REPOSITORY"]
with open(os.path.join(root, "commands"), "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
cache = E.parse(arguments["-settings"]).find("caches").get("defaultCacheDir")
with open(os.path.join(root, "asked"), "a") as log:
    for item in E.parse(arguments["-ivy"]).iter("dependency"):
        name = item.get("name")
        log.write(name + "\\n")
        source = os.path.join(root, name)
        trusted = "-Djavax.net.ssl.trustStoreType=JKS" in sys.argv
        if os.environ.get("FAKE_STRANGER") and not trusted:
            print("SSLHandshakeException: PKIX path building failed")
        elif os.path.exists(source):
            os.makedirs(os.path.join(cache, item.get("org")), exist_ok=True)
            target = os.path.join(cache, item.get("org"), "%s-%s.jar" % (name, item.get("rev")))
            open(target, "wb").write(open(source, "rb").read())
        else:
            print(":: java.net.ConnectException: Connection refused")
"""


class World:
    """A lock of five jars, the repository that has them, and an empty cache."""

    def __init__(self, tmp_path, monkeypatch):
        self.cache = tmp_path / "cache"
        self.repository = tmp_path / "repository"
        self.repository.mkdir()
        for name, content in JARS.items():
            (self.repository / name).write_bytes(content)
        self.locks = tmp_path / "locks"
        self.locks.mkdir()
        self.write_lock(JARS)
        java = tmp_path / "jre" / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(FAKE_JAVA)
        java.chmod(0o755)
        self.java_home = str(tmp_path / "jre")
        monkeypatch.setattr(distribution, "LOCKS", str(self.locks))
        monkeypatch.setattr(ivy, "find_ivy", lambda: "ivy.jar")
        monkeypatch.setenv("FAKE_REPOSITORY", str(self.repository))

    def write_lock(self, jars):
        artifacts = [
            {
                "group": "g",
                "artifact": name,
                "version": "1",
                "size_bytes": len(content),
                "sha512": hashlib.sha512(content).hexdigest(),
            }
            for name, content in jars.items()
        ]
        head = {"name": "kafka_2.13-3.9.2", "product": "kafka", "version": "3.9.2"}
        (self.locks / "kafka_2.13-3.9.2.json").write_text(
            json.dumps({**head, "artifacts": artifacts})
        )

    def obtain(self, check_mode=False, cache=None, **more):
        request = distribution.Request(
            product="kafka",
            version="3.9.2",
            cache_dir=str(cache or self.cache),
            java_home=self.java_home,
            **more,
        )
        self.lines = []
        progress = Progress(emit=self.lines.append, every=0.0)
        return distribution.obtain(request, progress, check_mode=check_mode)

    def asked(self):
        """Jars that were asked of the repository since the last call."""
        log = self.repository / "asked"
        names = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return names

    def commands(self):
        """The words of each call of Java."""
        return (self.repository / "commands").read_text().splitlines()

    def jar(self, name):
        return self.cache / "jars" / "g" / f"{name}-1.jar"


@pytest.fixture(name="world")
def make_world(tmp_path, monkeypatch):
    return World(tmp_path, monkeypatch)


def test_first_run_fetches_all_and_the_second_nothing(world):
    first = world.obtain()
    assert (first.changed, first.state, first.fetched_jars) == (True, "absent", 5)
    assert sorted(world.asked()) == sorted(JARS)
    second = world.obtain()
    assert (second.changed, second.state, second.fetched_jars) == (False, "complete", 0)
    assert world.asked() == []
    assert (second.archive, second.sha512) == (first.archive, first.sha512)
    assert second.sha512 == sha512_of(first.archive)
    assert second.size_bytes == os.path.getsize(first.archive)


def test_the_archive_is_a_plain_tgz_with_one_top_directory(world):
    archive = world.obtain().archive
    with gzip.open(archive) as stream:
        assert len(stream.read()) > sum(map(len, JARS.values()))
    with tarfile.open(archive) as tar:
        members = {member.name: member for member in tar}
        assert {name.split("/")[0] for name in members} == {"kafka_2.13-3.9.2"}
        for name, content in JARS.items():
            assert tar.extractfile(f"kafka_2.13-3.9.2/libs/{name}-1.jar").read() == content
    assert list(members) == sorted(members)
    assert members["kafka_2.13-3.9.2/bin/kafka-topics.sh"].linkname == "launch"
    assert members["kafka_2.13-3.9.2/bin/launch"].mode == 0o755
    assert {(member.uid, member.gid, member.mtime) for member in members.values()} == {
        (0, 0, 315532800)
    }


def test_same_lock_same_bytes_wherever_and_whenever(world, tmp_path):
    first = world.obtain()
    for jar in (world.cache / "jars" / "g").iterdir():
        jar.chmod(stat.S_IRUSR)
        os.utime(jar, (1, 1))
    os.replace(world.cache / "jars", tmp_path / "jars")
    other = tmp_path / "elsewhere"
    other.mkdir()
    os.replace(tmp_path / "jars", other / "jars")
    mask = os.umask(0o077)
    try:
        second = world.obtain(cache=other)
    finally:
        os.umask(mask)
    assert second.archive != first.archive
    assert second.sha512 == first.sha512


def test_check_mode_says_what_it_would_fetch_and_writes_nothing(world):
    result = world.obtain(check_mode=True)
    assert result.changed and result.sha512 == ""
    assert "would fetch 5 of 5 jars (1 MB)" in result.message
    assert not world.cache.exists()
    world.obtain()
    assert not world.obtain(check_mode=True).changed


@pytest.mark.parametrize("damage", ["truncated", "one bit", "emptied"])
def test_a_damaged_archive_is_made_anew_with_a_warning(world, damage):
    first = world.obtain()
    world.asked()
    content = bytearray(open(first.archive, "rb").read())
    if damage == "truncated":
        del content[len(content) // 2 :]
    elif damage == "one bit":
        content[len(content) // 2] ^= 1
    else:
        content.clear()
    with open(first.archive, "wb") as stream:
        stream.write(content)
    second = world.obtain()
    assert (second.changed, second.state, second.sha512) == (True, "damaged", first.sha512)
    assert "cut off or altered" in second.warnings[0]
    assert world.asked() == []
    assert world.obtain().state == "complete"


@pytest.mark.parametrize(
    "leftover", ["archive without manifest", "manifest without archive", "bad"]
)
def test_what_a_killed_run_leaves_is_not_taken_for_complete(world, leftover):
    first = world.obtain()
    if leftover == "archive without manifest":
        os.unlink(first.archive + ".json")
    elif leftover == "manifest without archive":
        os.unlink(first.archive)
    else:
        with open(first.archive + ".json", "w", encoding="utf-8") as stream:
            stream.write('{"sha512": ')
    archives = world.cache / "archives"
    (archives / ".partial-kafka_2.13-3.9.2.tgz").write_bytes(b"half")
    (archives / ".partial-zookeeper-3.9.5.tgz").write_bytes(b"half of another one")
    second = world.obtain()
    assert (second.changed, second.sha512, second.warnings) == (True, first.sha512, ())
    assert sorted(path.name for path in archives.iterdir()) == [
        "kafka_2.13-3.9.2.tgz",
        "kafka_2.13-3.9.2.tgz.json",
    ]


def test_only_missing_jars_are_fetched_after_a_kill(world):
    world.obtain()
    world.asked()
    os.unlink(world.cache / "archives" / "kafka_2.13-3.9.2.tgz.json")
    world.jar("jar2").unlink()
    # jar3 had arrived when the run was killed, jar4 only half
    staging = world.cache / "jars" / ".fetching" / "g"
    staging.mkdir(parents=True)
    os.replace(world.jar("jar3"), staging / "jar3-1.jar")
    world.jar("jar4").unlink()
    (staging / "jar4-1.jar").write_bytes(JARS["jar4"][:100])
    result = world.obtain()
    assert world.asked() == ["jar2", "jar4"]
    assert result.fetched_jars == 2
    assert not staging.parent.exists()


def test_a_corrupted_jar_in_the_cache_is_fetched_again(world):
    first = world.obtain()
    world.asked()
    content = bytearray(JARS["jar5"])
    content[7] ^= 1
    world.jar("jar5").write_bytes(content)
    os.unlink(first.archive)
    assert world.obtain().sha512 == first.sha512
    assert world.asked() == ["jar5"]
    assert world.jar("jar5").read_bytes() == JARS["jar5"]


def test_a_corrupted_jar_that_cannot_be_fetched_is_never_assembled(world):
    first = world.obtain()
    world.jar("jar5").write_bytes(JARS["jar5"][:-1])
    os.unlink(first.archive)
    (world.repository / "jar5").unlink()
    with pytest.raises(ProblemError, match=r"\[fetch.failed\].*1 of 5 jars.*g:jar5:1"):
        world.obtain()
    assert not os.path.exists(first.archive)


def test_wrong_bytes_from_the_mirror_are_refused_and_the_rest_is_kept(world):
    (world.repository / "jar1").write_bytes(b"something else")
    with pytest.raises(ProblemError, match=r"\[jar.checksum\].*g:jar1:1 arrived with another"):
        world.obtain()
    assert not world.jar("jar1").exists()
    assert not (world.cache / "archives" / "kafka_2.13-3.9.2.tgz").exists()
    (world.repository / "jar1").write_bytes(JARS["jar1"])
    world.asked()
    assert world.obtain().changed
    assert world.asked() == ["jar1"]


def test_no_network_is_explained_and_what_came_is_kept(world):
    (world.repository / "jar4").unlink()
    with pytest.raises(ProblemError) as error:
        world.obtain()
    assert error.value.problem.check == "fetch.failed"
    assert "1 of 5 jars of kafka_2.13-3.9.2 did not arrive, first g:jar4:1" in str(error.value)
    assert "Connection refused" in str(error.value)
    # the four that came were asked for once; a second try was for the missing one alone
    assert sorted(world.asked()) == ["jar1", "jar2", "jar3", "jar4", "jar4", "jar5"]
    (world.repository / "jar4").write_bytes(JARS["jar4"])
    world.asked()
    world.obtain()
    assert world.asked() == ["jar4"]


def test_java_learns_of_the_systems_authorities_if_it_does_not_know_the_servers(
    world, monkeypatch, tmp_path
):
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    monkeypatch.setenv("FAKE_STRANGER", "1")
    assert world.obtain().fetched_jars == 5
    assert sorted(path.name for path in (world.cache / "jars").iterdir()) == ["g"]


def test_another_lock_or_launcher_outdates_the_archive(world):
    first = world.obtain()
    world.write_lock({name: JARS[name] for name in ("jar1", "jar2")})
    second = world.obtain()
    assert (second.state, second.changed, second.warnings) == ("outdated", True, ())
    assert second.sha512 != first.sha512


def test_a_run_waits_for_the_one_that_fills_the_cache(world):
    world.cache.mkdir()
    request = distribution.Request(
        product="kafka", version="3.9.2", cache_dir=str(world.cache), java_home=world.java_home
    )
    lines = []

    class Waited(Exception):
        pass

    def emit(line):
        lines.append(line)
        raise Waited

    with exclusive(str(world.cache / ".lock")):
        with pytest.raises(Waited):
            distribution.obtain(request, Progress(emit=emit))
    assert lines == ["kafka_2.13-3.9.2: another run fills the cache, waiting for it"]
    assert world.obtain().changed


def test_progress_speaks_at_most_every_few_seconds():
    now = [0.0]
    lines = []
    progress = Progress(emit=lines.append, clock=lambda: now[0], every=4.0)
    for second in range(10):
        now[0] = float(second)
        progress.tell(f"at {second}")
    assert lines == ["at 4", "at 8"]


def test_a_line_that_costs_something_is_made_only_to_be_said():
    now, made, lines = [0.0], [], []
    progress = Progress(emit=lines.append, clock=lambda: now[0], every=4.0)
    for second in range(10):
        now[0] = float(second)
        progress.tell(lambda: made.append(now[0]) or f"at {now[0]:g}")
    assert made == [4.0, 8.0] and lines == ["at 4", "at 8"]


@pytest.mark.parametrize(
    "changes, check",
    [
        ({"product": "cassandra"}, "product.unknown"),
        ({"version": "3.9"}, "version.unknown"),
        ({"version": "../3.9.2"}, "version.unknown"),
        ({"version": "newest"}, "version.unknown"),
        ({"scala_version": "2.12"}, "version.unknown"),
        ({"scala_version": "../../x"}, "version.unknown"),
        ({"sha512": "abc"}, "archive.checksum"),
        ({"source": "archive"}, "archive.url"),
        ({"source": "archive", "url": "/x.tgz"}, "version.unknown"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_written(world, changes, check):
    settings = {"product": "kafka", "version": "3.9.2", "cache_dir": str(world.cache), **changes}
    with pytest.raises(ProblemError) as error:
        distribution.obtain(distribution.Request(**settings), Progress(emit=print))
    assert error.value.problem.check == check
    assert "Remedy: " in str(error.value)
    assert not world.cache.exists()


def test_a_cache_that_cannot_be_written_is_said(world, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ProblemError, match=r"\[cache.unusable\] kafkaops_cache=.*file"):
        world.obtain(cache=blocked)


def test_default_cache_dir(monkeypatch):
    assert distribution.default_cache_dir({"KAFKAOPS_CACHE": "/c"}) == "/c"
    monkeypatch.setenv("HOME", "/home/x")
    assert distribution.default_cache_dir({}) == "/home/x/.cache/kafkaops"


def test_a_mirror_with_a_login_is_refused_and_written_nowhere(world):
    """Ivy would not send it, and its settings and its log would lie in the cache for everybody."""
    with pytest.raises(ProblemError) as error:
        world.obtain(mirror="https://bob:s3cret@m.example/maven")
    assert error.value.problem.check == "fetch.login"
    assert "distribution_mirror=https://bob:(hidden)@m.example/maven" in str(error.value)
    assert "s3cret" not in str(error.value.problem.to_dict()) and not world.cache.exists()


def test_the_login_of_a_proxy_is_in_no_command_line_and_in_no_file_afterwards(world, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://bob:s3cret%40@p.example:3128")
    world.obtain()
    (words,) = set(world.commands())
    assert "s3cret" not in words and "-Dhttps.proxyHost=p.example" in words
    (name,) = [word[1:] for word in words.split() if word.startswith("@")]
    assert not os.path.exists(name)
    left = [path for path in world.cache.rglob("*") if path.is_file()]
    assert left and not [path for path in left if b"s3cret" in path.read_bytes()]
