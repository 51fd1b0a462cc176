# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installing a release: what is left alone, what is repaired, what is refused."""

import hashlib
import io
import json
import os
import stat
import tarfile

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply import installation
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply.installed import (
    complete_releases,
)
from ansible_collections.kafkaops.cluster.plugins.modules import release
from tests.support.run_module import run_module

NAME = "kafka_2.13-3.9.2"
CONTENT = {
    "top/bin/launch": b"#!/bin/sh\n",
    "top/bin/kafka-topics.sh": "launch",
    "top/libs/kafka.jar": b"jar" * 1000,
    "top/libs/zk.jar": b"zk" * 1000,
}


def write(path, content, **special):
    """Write a .tgz of {name: bytes, or str for a link} and return (path, sha512)."""
    with tarfile.open(path, "w:gz") as tar:
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.mode = 0o755 if "/bin/" in name else 0o600
            if isinstance(data, str):
                info.type, info.linkname = special.get("link_type", tarfile.SYMTYPE), data
                tar.addfile(info)
            else:
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return str(path), hashlib.sha512(path.read_bytes()).hexdigest()


class Host:
    """An install directory and archives to put there."""

    def __init__(self, tmp_path):
        self.tmp = tmp_path
        self.root = tmp_path / "opt"
        self.usual = self.root / "releases" / NAME

    def archive(self, content=None, name="a.tgz", **special):
        return write(self.tmp / name, CONTENT if content is None else content, **special)

    def run(self, archive, sha512, state="present", check_mode=False, name=NAME):
        return release.run(name, str(self.root), archive, sha512, state, check_mode)

    def leftovers(self):
        return [entry.name for entry in self.root.iterdir() if entry.name.startswith(".partial")]


@pytest.fixture(name="host")
def make_host(tmp_path):
    return Host(tmp_path)


def test_installs_once(host):
    archive, digest = host.archive()
    assert not host.run(None, digest, state="probe")["installed"]
    assert not host.root.exists()
    first = host.run(archive, digest)
    assert (first["changed"], first["installed"], first["path"]) == (True, True, str(host.usual))
    assert (host.usual / "libs" / "kafka.jar").read_bytes() == CONTENT["top/libs/kafka.jar"]
    assert os.readlink(host.usual / "bin" / "kafka-topics.sh") == "launch"
    os.unlink(archive)
    second = host.run(archive, digest)
    assert (second["changed"], second["installed"]) == (False, True)
    assert host.run(None, digest, state="probe") == {**second, "changed": False}


def test_a_place_where_nothing_can_be_written_is_refused_like_all_else(host):
    host.root.write_text("a file")
    archive, digest = host.archive()
    arguments = {"install_dir": str(host.root), "archive": archive, "sha512": digest}
    result = run_module("release", {"name": NAME, **arguments})
    (refused,) = result.refusals
    assert refused["check"] == "release.unwritable" and refused["line"] == result.msg
    assert refused["value"] == str(host.root) and "200 MB" in refused["remedy"]


def test_the_preflight_is_told_what_is_installed_and_whole(host):
    assert complete_releases(str(host.root)) == []
    archive, digest = host.archive()
    host.run(archive, digest)
    others = {"own": None, "broken": "{", "list": "[]", "empty": "{}"}
    others["files"] = '{"archive_sha512": "ab", "files": []}'
    others["file"] = '{"archive_sha512": "ab", "files": {"x": 1}}'
    for name, manifest in others.items():
        (host.root / "releases" / name).mkdir()
        if manifest is not None:
            (host.root / "releases" / name / ".release.json").write_text(manifest)
    assert complete_releases(str(host.root)) == [{"path": str(host.usual), "sha512": digest}]
    os.truncate(host.usual / "libs" / "kafka.jar", 10)
    assert complete_releases(str(host.root)) == []


def test_modes_do_not_depend_on_the_umask(host):
    mask = os.umask(0o077)
    try:
        host.run(*host.archive())
    finally:
        os.umask(mask)
    modes = {
        path: stat.S_IMODE((host.usual / path).stat().st_mode)
        for path in ("../..", "..", ".", "bin", "bin/launch", "libs/kafka.jar")
    }
    jar = modes.pop("libs/kafka.jar")
    assert (set(modes.values()), jar) == ({0o755}, 0o644)


def test_check_mode_changes_nothing(host):
    archive, digest = host.archive()
    result = host.run(archive, digest, check_mode=True)
    assert (result["changed"], result["installed"]) == (True, False)
    assert "absent" in result["diff"]["before"] and "complete" in result["diff"]["after"]
    assert not host.root.exists()


def test_what_was_verified_is_what_is_unpacked(host, monkeypatch):
    """Somebody exchanges the file between the look at its digest and the unpacking: no use."""
    archive, digest = host.archive()
    evil, _digest = host.archive({**CONTENT, "top/libs/kafka.jar": b"evil"}, "evil.tgz")
    unpack = installation.unpack

    def exchanged(*arguments):
        os.replace(evil, archive)
        return unpack(*arguments)

    monkeypatch.setattr(installation, "unpack", exchanged)
    host.run(archive, digest)
    assert (host.usual / "libs" / "kafka.jar").read_bytes() == CONTENT["top/libs/kafka.jar"]


def test_leftovers_of_a_killed_run_are_removed(host):
    partial = host.root / f".partial-{NAME}" / "libs"
    partial.mkdir(parents=True)
    (partial / "kafka.jar").write_bytes(b"half")
    assert host.run(*host.archive())["changed"]
    assert host.leftovers() == []
    assert (host.usual / "libs" / "kafka.jar").read_bytes() == CONTENT["top/libs/kafka.jar"]


@pytest.mark.parametrize("damage", ["missing", "truncated", "link gone", "link became file"])
def test_only_damaged_files_are_put_back(host, damage):
    archive, digest = host.archive()
    host.run(archive, digest)
    jar, link = host.usual / "libs" / "kafka.jar", host.usual / "bin" / "kafka-topics.sh"
    untouched = (host.usual / "libs" / "zk.jar").stat().st_ino
    if damage == "missing":
        jar.unlink()
    elif damage == "truncated":
        jar.write_bytes(b"jar")
    else:
        link.unlink()
        if damage == "link became file":
            link.write_bytes(b"x")
    assert not host.run(None, digest, state="probe")["installed"]
    result = host.run(archive, digest)
    damaged = "libs/kafka.jar" if damage in ("missing", "truncated") else "bin/kafka-topics.sh"
    assert (result["found"], result["replaced"]) == ("damaged", [damaged])
    assert jar.read_bytes() == CONTENT["top/libs/kafka.jar"]
    assert os.readlink(link) == "launch"
    assert (host.usual / "libs" / "zk.jar").stat().st_ino == untouched


def test_other_launchers_are_exchanged_in_place_and_the_jars_stay(host):
    host.run(*host.archive())
    jar = (host.usual / "libs" / "kafka.jar").stat().st_ino
    newer = {**CONTENT, "top/bin/launch": b"#!/bin/sh\n# newer\n", "top/config/x": b"y"}
    del newer["top/bin/kafka-topics.sh"]
    archive, digest = host.archive(newer, "b.tgz")
    result = host.run(archive, digest)
    assert result["path"] == str(host.usual)
    assert result["replaced"] == ["bin/launch", "config/x", "bin/kafka-topics.sh"]
    assert (host.usual / "libs" / "kafka.jar").stat().st_ino == jar
    assert not (host.usual / "bin" / "kafka-topics.sh").is_symlink()
    assert not host.run(archive, digest)["changed"]


def test_a_kill_while_exchanging_is_mended_by_the_next_run(host, monkeypatch):
    host.run(*host.archive())
    archive, digest = host.archive({**CONTENT, "top/bin/launch": b"newer", "top/bin/z": b"z"}, "b")

    class Killed(BaseException):
        pass

    write_atomically = installation.write_atomically

    def die_before_the_last_step(path, content, mode):
        if path == str(host.usual / ".release.json"):
            raise Killed
        write_atomically(path, content, mode)

    with monkeypatch.context() as patch:
        patch.setattr(installation, "write_atomically", die_before_the_last_step)
        with pytest.raises(Killed):
            host.run(archive, digest)
    assert (host.usual / "bin" / "launch").read_bytes() == b"newer"
    assert not host.run(None, digest, state="probe")["installed"]
    assert host.run(archive, digest)["installed"]
    assert (host.usual / "bin" / "z").read_bytes() == b"z"


def test_other_jars_under_the_same_name_go_beside_it(host):
    archive, digest = host.archive()
    host.run(archive, digest)
    other, other_digest = host.archive({**CONTENT, "top/libs/kafka.jar": b"other"}, "b.tgz")
    result = host.run(other, other_digest)
    assert result["path"] == f"{host.usual}-{other_digest[:12]}"
    assert (host.usual / "libs" / "kafka.jar").read_bytes() == CONTENT["top/libs/kafka.jar"]
    assert not host.run(None, other_digest)["changed"]
    assert not host.run(None, digest)["changed"]


def test_a_directory_of_somebody_else_is_left_alone(host):
    host.usual.mkdir(parents=True)
    (host.usual / "precious").write_text("data")
    archive, digest = host.archive()
    result = host.run(archive, digest)
    assert result["path"] == f"{host.usual}-{digest[:12]}"
    assert (host.usual / "precious").read_text() == "data"


def test_a_place_taken_by_somebody_else_is_refused(host):
    archive, digest = host.archive()
    for path in (host.usual, host.usual.with_name(f"{NAME}-{digest[:12]}")):
        path.mkdir(parents=True)
        (path / "precious").write_text("data")
    with pytest.raises(ProblemError, match=r"\[release.occupied\]"):
        host.run(archive, digest)
    assert host.leftovers() == []


@pytest.mark.parametrize(
    "content, special, words",
    [
        ({"top/../../evil": b"x"}, {}, "leads out of it"),
        ({"/etc/evil": b"x"}, {}, "leads out of it"),
        ({"../evil": b"x"}, {}, "leads out of it"),
        ({"top/link": "../../etc/passwd"}, {}, "leads out of it"),
        ({"top/link": "/etc/passwd"}, {}, "leads out of it"),
        ({"top/a": b"x", "other/b": b"x"}, {}, "several top directories"),
        ({"file": b"x"}, {}, "beside the top directory"),
        ({"top/link": "top/a"}, {"link_type": tarfile.LNKTYPE}, "not a plain file"),
        ({"top/device": ""}, {"link_type": tarfile.CHRTYPE}, "not a plain file"),
    ],
)
def test_unsafe_members_are_refused_and_nothing_is_left(host, content, special, words):
    archive, digest = host.archive({"top/libs/a.jar": b"a", **content}, **special)
    with pytest.raises(ProblemError) as error:
        host.run(archive, digest)
    assert error.value.problem.check == "archive.unsafe"
    assert words in str(error.value)
    assert not host.usual.exists() and host.leftovers() == []
    assert not (host.tmp / "evil").exists() and not (host.root / "evil").exists()


def test_no_member_is_written_through_a_link(host):
    archive, digest = host.archive({"top/dir": "bin", "top/bin/a": b"a", "top/dir/b": b"b"})
    with pytest.raises(OSError):
        host.run(archive, digest)
    assert not host.usual.exists() and host.leftovers() == []


def test_a_wrong_digest_names_both(host):
    archive, digest = host.archive()
    with pytest.raises(ProblemError) as error:
        host.run(archive, "b" * 128)
    assert error.value.problem.check == "archive.checksum"
    assert digest in str(error.value) and "b" * 128 in str(error.value)
    assert not host.usual.exists()


@pytest.mark.parametrize("cut", [0, 100, -20])
def test_a_truncated_archive_is_refused_even_with_its_own_digest(host, cut):
    archive, _digest = host.archive()
    with open(archive, "rb") as stream:
        content = stream.read()[:cut]
    with open(archive, "wb") as stream:
        stream.write(content)
    with pytest.raises(ProblemError, match="archive.unsafe"):
        host.run(archive, hashlib.sha512(content).hexdigest())
    assert not host.usual.exists() and host.leftovers() == []


def test_a_missing_archive_says_what_to_do(host):
    with pytest.raises(ProblemError, match=r"\[archive.missing\].*copy it here first"):
        host.run(str(host.tmp / "none"), "b" * 128)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", ".hidden", "a b"])
def test_a_name_is_one_directory(host, name):
    with pytest.raises(ProblemError, match="release.name"):
        host.run(None, "b" * 128, name=name)


def test_the_manifest_lists_every_file(host):
    archive, digest = host.archive()
    host.run(archive, digest)
    manifest = json.loads((host.usual / ".release.json").read_text())
    assert manifest["archive_sha512"] == digest
    assert set(manifest["files"]) == {name[len("top/") :] for name in CONTENT}
