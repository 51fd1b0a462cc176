# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Binary releases from files and a web server: what is refused, and in which words."""

import hashlib
import http.server
import io
import tarfile
import threading

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import Progress
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply import distribution

BINARY = ["kafka_2.13-3.9.2/libs/kafka_2.13-3.9.2.jar", "kafka_2.13-3.9.2/bin/kafka-topics.sh"]
SOURCE = ["kafka-3.9.2-src/build.gradle", "kafka-3.9.2-src/core/src/main/scala/kafka/Kafka.scala"]
ZOOKEEPER_SOURCE = ["apache-zookeeper-3.9.5/pom.xml", "apache-zookeeper-3.9.5/bin/zkServer.sh"]
OTHER_VERSION = ["kafka_2.13-3.8.1/libs/kafka_2.13-3.8.1.jar"]


def tgz(names):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 1000
            tar.addfile(info, io.BytesIO(name.encode().ljust(1000)))
    return stream.getvalue()


def sha512(content):
    return hashlib.sha512(content).hexdigest()


def obtain(tmp_path, url, digest, product="kafka", version="3.9.2"):
    request = distribution.Request(
        product=product,
        version=version,
        cache_dir=str(tmp_path / "cache"),
        source="archive",
        url=url,
        sha512=digest,
    )
    return distribution.obtain(request, Progress(emit=print))


def put(tmp_path, content, name="kafka_2.13-3.9.2.tgz"):
    path = tmp_path / name
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_file_is_taken_once_and_then_comes_from_the_cache(tmp_path, form):
    content = tgz(BINARY)
    path = put(tmp_path, content)
    first = obtain(tmp_path, form.format(path), sha512(content).upper())
    assert first.changed and first.sha512 == sha512(content)
    assert first.name == "kafka_2.13-3.9.2"
    (tmp_path / "kafka_2.13-3.9.2.tgz").unlink()
    assert not obtain(tmp_path, form.format(path), sha512(content)).changed


def test_both_sources_of_one_release_live_beside_each_other(tmp_path):
    content = tgz(BINARY)
    result = obtain(tmp_path, put(tmp_path, content), sha512(content))
    assert result.archive.endswith(f"archives/kafka_2.13-3.9.2-{sha512(content)[:12]}.tgz")


@pytest.mark.parametrize(
    "names, product, version, check, words",
    [
        (
            SOURCE,
            "kafka",
            "3.9.2",
            "archive.source_release",
            "take the binary release, kafka_2.13-3.9.2.tgz",
        ),
        (
            ZOOKEEPER_SOURCE,
            "zookeeper",
            "3.9.5",
            "archive.source_release",
            "apache-zookeeper-3.9.5-bin.tar.gz",
        ),
        (OTHER_VERSION, "kafka", "3.9.2", "archive.other_release", "no kafka_2.13-3.9.2.jar"),
        (BINARY, "zookeeper", "3.9.5", "archive.other_release", "no zookeeper-3.9.5.jar"),
        (["x/README"], "kafka", "3.9.2", "archive.source_release", "no libs/"),
    ],
)
def test_the_wrong_archive_with_the_right_digest(tmp_path, names, product, version, check, words):
    content = tgz(names)
    with pytest.raises(ProblemError) as error:
        obtain(tmp_path, put(tmp_path, content, "a.tgz"), sha512(content), product, version)
    assert error.value.problem.check == check
    assert words in str(error.value)
    assert not list((tmp_path / "cache" / "archives").glob("*.tgz"))


@pytest.mark.parametrize(
    "product, version, name",
    [
        ("kafka", "3.9.2", "kafka-3.9.2-src.tgz"),
        ("zookeeper", "3.9.5", "apache-zookeeper-3.9.5.tar.gz"),
    ],
)
def test_a_source_release_is_known_by_its_name_before_any_download(
    tmp_path, product, version, name
):
    with pytest.raises(ProblemError) as error:
        obtain(tmp_path, f"http://127.0.0.1:1/{name}", "a" * 128, product, version)
    assert error.value.problem.check == "archive.source_release"


def test_a_wrong_digest_names_both(tmp_path):
    content = tgz(BINARY)
    with pytest.raises(ProblemError) as error:
        obtain(tmp_path, put(tmp_path, content), "a" * 128)
    assert error.value.problem.check == "archive.checksum"
    assert "a" * 128 in str(error.value) and sha512(content) in str(error.value)


def test_no_tar_at_all(tmp_path):
    content = b"<html>not found</html>"
    with pytest.raises(ProblemError, match=r"\[archive.unreadable\]"):
        obtain(tmp_path, put(tmp_path, content), sha512(content))


def test_a_missing_file(tmp_path):
    with pytest.raises(ProblemError, match=r"\[fetch.failed\].*cannot be read"):
        obtain(tmp_path, str(tmp_path / "none.tgz"), "a" * 128)


def test_an_unknown_release_without_digest(tmp_path):
    with pytest.raises(ProblemError) as error:
        obtain(tmp_path, "https://downloads.example/kafka_2.13-3.9.2.tgz", "")
    assert error.value.problem.check == "version.unknown"
    assert "set distribution_sha512" in str(error.value)
    assert "kafka_2.13-3.9.2" in str(error.value)


def test_a_password_in_the_url_is_shown_nowhere(tmp_path):
    url = "https://bob:s3cret@downloads.invalid/kafka_2.13-3.9.2.tgz"
    with pytest.raises(ProblemError) as error:
        obtain(tmp_path, url, "a" * 128)
    request = distribution.Request(
        "kafka", "3.9.2", str(tmp_path / "cache"), source="archive", url=url, sha512="a" * 128
    )
    forecast = distribution.obtain(request, Progress(emit=print), check_mode=True).message
    for text in (str(error.value), str(error.value.problem.to_dict()), forecast):
        assert "s3cret" not in text
        assert "bob:(hidden)@downloads.invalid" in text


@pytest.mark.parametrize("login", ["bob:hun/ter2", "bob:hun#ter2", "bob:hun?ter2", "bob:[hunter2"])
def test_a_login_that_a_url_cannot_have_is_refused_and_not_shown(tmp_path, login):
    url = f"https://{login}@downloads.invalid/kafka_2.13-3.9.2.tgz"
    with pytest.raises(ProblemError) as error:
        obtain(tmp_path, url, "a" * 128)
    text = str(error.value) + str(error.value.problem.to_dict())
    assert error.value.problem.check == "archive.url" and "%2F" in text
    assert "hun" not in text and "ter2" not in text


class Server:
    """A web server on a free port; `announced` may exceed what it sends."""

    def __init__(self, content, announced):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(announced))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_arguments):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/kafka_2.13-3.9.2.tgz"

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_a_download_is_verified_and_stored(tmp_path):
    content = tgz(BINARY)
    with Server(content, len(content)) as server:
        result = obtain(tmp_path, server.url, sha512(content))
    assert (result.changed, result.size_bytes) == (True, len(content))


def test_a_truncated_download_is_refused_and_leaves_nothing(tmp_path):
    content = tgz(BINARY)
    half = content[: len(content) // 2]
    with Server(half, len(content)) as server:
        with pytest.raises(ProblemError) as error:
            obtain(tmp_path, server.url, sha512(content))
    assert error.value.problem.check == "archive.truncated"
    assert f"{len(half)} of {len(content)} bytes arrived" in str(error.value)
    assert not list((tmp_path / "cache" / "archives").glob("kafka*"))


def test_a_proxy_of_the_environment_is_used(tmp_path, monkeypatch):
    content = tgz(BINARY)
    with Server(content, len(content)) as proxy:
        monkeypatch.setenv("no_proxy", "")
        monkeypatch.setenv("http_proxy", proxy.url.rsplit("/", 1)[0])
        # the name does not resolve: only a proxy can answer
        result = obtain(tmp_path, "http://nowhere.invalid/kafka_2.13-3.9.2.tgz", sha512(content))
    assert result.changed
