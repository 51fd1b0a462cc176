# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the ledger is, what executors elsewhere get, and what is said where they cannot do the work."""

from multiprocessing import AuthenticationError, connection

import pytest
from flow.engine import executors, session
from flow.engine.executors import FIRST_SECONDS, QUIET_SECONDS, enough
from flow.messages.failure import CannotRun
from flow.prepare import client
from flow.record import files, place
from flow.write import notes


@pytest.mark.parametrize(
    "ledger,remote,path",
    [
        ("/tmp/l", False, "/tmp/l"),
        ("l/ledger", False, "l/ledger"),
        ("a:b", False, "a:b"),
        ("file:///tmp/two%20words", False, "/tmp/two words"),
        ("file:/tmp/l", False, "/tmp/l"),
        ("file://localhost/tmp/l", False, "/tmp/l"),
        ("hdfs://nn:8020/l", True, None),
        ("hdfs:///l", True, None),
        ("s3a://bucket/l", True, None),
        ("abfs://c@a.example/l", True, None),
    ],
)
def test_a_ledger_is_a_directory_or_what_spark_opens(ledger, remote, path):
    assert place.is_remote(ledger) is remote
    if not remote:
        assert place.path_of(ledger) == path


def test_a_file_uri_of_another_machine_is_refused():
    with pytest.raises(CannotRun, match="names the machine 'nas'"):
        place.path_of("file://nas/ledger")


def test_a_ledger_by_file_uri_is_that_directory(tmp_path):
    """Before, it was a directory `file:` below the working directory."""
    files.new_ledger((tmp_path / "two words").as_uri())
    assert (tmp_path / "two words" / "_attempts").is_dir()
    with pytest.raises(CannotRun, match="has no _plan.json"):
        files.load_plan((tmp_path / "two words").as_uri())


@pytest.mark.parametrize(
    "seen,wanted,now,expected",
    [
        ([(0, 0, 2)], 4, FIRST_SECONDS - 1, False),
        ([(0, 0, 2), (3, 1, 2)], 4, 4, False),
        ([(0, 0, 2), (3, 1, 2)], 2, 3, True),
        ([(0, 0, 2), (3, 1, 2)], 4, 3 + QUIET_SECONDS, True),
        ([(0, 0, 2), (3, 1, 2), (7, 2, 4)], 8, 3 + QUIET_SECONDS, False),
        ([(0, 0, 2), (3, 1, 2), (7, 2, 4)], 4, 7, True),
        # one was lost: another may come
        ([(0, 1, 2), (9, 0, 2)], 2, 10, False),
    ],
)
def test_how_long_executors_are_waited_for(seen, wanted, now, expected):
    assert enough(seen, wanted, now) is expected


def test_a_master_that_gives_nothing_is_said():
    with pytest.raises(CannotRun, match="no executor within"):
        enough([(5, 0, 2)], 4, 5 + FIRST_SECONDS)


def test_settings_of_spark_take_precedence_and_lists_are_joined():
    own = {"spark.jars": "/a.jar", "spark.ui.enabled": "false", "spark.speculation": "false"}
    given = {"spark.jars": "/b.jar", "spark.ui.enabled": "true", "spark.executor.memory": "1g"}
    assert session.merged(given, own) == {
        "spark.jars": "/a.jar,/b.jar",
        "spark.ui.enabled": "true",
        "spark.speculation": "false",
        "spark.executor.memory": "1g",
    }


@pytest.mark.parametrize(
    "key,remedy", [("spark.sql.ansi.enabled", "leave it out"), ("spark.master", "give --master")]
)
def test_what_the_judging_rests_on_is_the_jobs_own(key, remedy):
    with pytest.raises(CannotRun, match=f"{key} is the job's own: {remedy}"):
        session.merged({key: "true"}, {})


TEXTS = {"/ca.pem": "CA", "/me.pem": "CERT KEY"}


def test_pem_files_travel_as_text():
    given = {
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/me.pem",
        "ssl.key.location": "/me.pem",
        "security.protocol": "SSL",
    }
    found = client.contents(given, TEXTS.get)
    assert found == {
        "ssl.ca.location": "CA",
        "ssl.certificate.location": "CERT KEY",
        "ssl.key.location": "CERT KEY",
    }
    assert client.contents({"ssl.ca.location": "/a/directory"}, TEXTS.get) == {}
    assert client.without_files(client.for_java(given), TEXTS.get) == {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "CA",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "CERT KEY",
        "ssl.keystore.key": "CERT KEY",
    }


def test_files_that_do_not_travel_are_named():
    given = {"sasl.kerberos.keytab": "/k.keytab", "ssl.ca.location": "/ca.pem", "ssl.cipher": "x"}
    assert client.paths(given) == ["/k.keytab"]


@pytest.mark.parametrize(
    "said,told",
    [
        (
            'java.io.IOException: Cannot run program "/x/python": error=2, No such file',
            "there is no /x/python",
        ),
        ("pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] 3.9", "PYTHON_VERSION"),
    ],
)
def test_executors_without_the_python(said, told):
    sentence = executors.python_refusal(said)
    assert told in sentence and "spark.pyspark.python" in sentence


def test_only_workers_of_the_run_are_listened_to():
    with notes.relaying("hdfs://nowhere/l", "127.0.0.1", "127.0.0.1") as given:
        address = given["relay"]["address"]
        assert address[0] == "127.0.0.1" and address[1] > 0
        with pytest.raises(AuthenticationError):
            connection.Client(address, authkey=b"another")
        # and one that says nothing keeps nobody else from being listened to
        with (
            connection.Client(address),
            connection.Client(address, authkey=given["relay"]["key"]) as own,
        ):
            own.send_bytes(b"no attempt")
            assert "error" in own.recv_bytes().decode()
    with pytest.raises(OSError):
        connection.Client(address, authkey=given["relay"]["key"])


def test_nothing_listens_for_a_ledger_in_a_directory(tmp_path):
    with notes.relaying(str(tmp_path), "127.0.0.1", "127.0.0.1") as given:
        assert given == {}


def test_a_directory_that_java_opens_is_like_any_other(spark, tmp_path):
    there = place.HadoopDirectory(spark.sparkContext, (tmp_path / "l").as_uri())
    assert not there.exists() and there.names() == []
    there.make("_attempts")
    there.write("_attempts/one", "1")
    there.write("_attempts/one", "2")
    there.claim("_plan.json")
    with pytest.raises(FileExistsError):
        there.claim("_plan.json")
    assert there.names() == ["_attempts", "_plan.json"] and there.names("_attempts") == ["one"]
    assert there.read("_attempts/one") == "2" and there.read("_plan.json") == ""
    with pytest.raises(FileNotFoundError):
        there.read("_attempts/two")
    there.remove("")
    assert not there.exists()


def test_a_file_system_that_is_nowhere_is_refused_in_a_sentence(spark):
    """PySpark tells some of Java's exceptions by names of its own: an unknown host is an illegal argument."""
    assert spark.version
    with pytest.raises(
        CannotRun, match="the ledger hdfs://nn.invalid/A-1 cannot be opened: "
    ) as refused:
        place.of("hdfs://nn.invalid/A-1")
    assert "give another --ledger" in str(refused.value)
