# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plug-ins: on the class path by their digest, obtained by Ansible itself or refused."""

from __future__ import annotations

import base64
import hashlib
import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.generation import (
    Generation,
    reasons,
)
from tests.support.role_variables import generation_of

ROOT = Path(__file__).resolve().parents[3]
NAMES = ("release", "java_home", "main_class", "classpath")


def staged(*plugins):
    """The generation of a broker with these plug-ins."""
    found = generation_of("kafka", {"kafka_plugins": list(plugins)})
    return Generation(**{name: found[name] for name in NAMES})


def test_class_path():
    assert staged().classpath == "libs/*"
    first, second = ({"name": f"my {n}", "src": "/x", "sha512": f"{n}F" * 64} for n in "12")
    assert staged(first, second).classpath == (
        f"libs/*:/opt/kafka/plugins/{'1f' * 64}/my_1.jar:/opt/kafka/plugins/{'2f' * 64}/my_2.jar"
    )


def test_another_file_under_the_same_name_is_a_reason_to_restart():
    before = staged({"name": "mine", "src": "/x", "sha512": "1" * 128})
    after = staged({"name": "mine", "src": "/x", "sha512": "2" * 128})
    (reason,) = reasons(before.meaning(), after.meaning())
    assert reason.startswith("classpath ")


@pytest.fixture
def obtain(tmp_path):
    """Run the controller's part for two brokers, of which one has the plug-in `jar`."""

    def run(jar, sha512, *arguments):
        plugins = [{"name": "mine", "src": str(jar), "sha512": sha512}]
        inventory = {"kafka": {"hosts": {"one": {}, "two": {"kafka_plugins": plugins}}}}
        (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory))
        role = {"name": "kafkaops.cluster.kafka", "tasks_from": "obtain_plugins.yml"}
        play = {"hosts": "kafka", "gather_facts": False, "tasks": [{"include_role": role}]}
        (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
        return subprocess.run(
            [
                Path(sys.executable).with_name("ansible-playbook"),
                *("-i", tmp_path / "hosts.yml", "-e", f"kafkaops_cache={tmp_path}/cache"),
                *arguments,
                tmp_path / "play.yml",
            ],
            env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_file_of_the_controller_is_obtained_and_a_wrong_digest_refused(obtain, tmp_path):
    jar = tmp_path / "a plug-in.jar"
    jar.write_bytes(b"classes")
    digest = hashlib.sha512(b"classes").hexdigest()
    done = obtain(jar, digest.upper())
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "cache" / "plugins" / digest / "mine.jar").read_bytes() == b"classes"
    done = obtain(jar, digest)
    assert "changed=0" in done.stdout and "failed=0" in done.stdout, done.stdout
    wrong = "0" * 128
    done = obtain(jar, wrong)
    assert done.returncode != 0 and wrong in done.stdout and digest in done.stdout, done.stdout
    assert not list((tmp_path / "cache" / "plugins" / wrong).iterdir())


@pytest.fixture
def server():
    """A server that wants a name and a password, and notes what it is sent; `server.answer` is its status."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            found = self.headers.get("Authorization")
            self.server.seen.append((self.path, found))
            self.send_response(self.server.answer if found else 401)
            if not found:
                self.send_header("WWW-Authenticate", 'Basic realm="jars"')
            self.send_header("Content-Length", "7")
            self.end_headers()
            self.wfile.write(b"classes")

        def log_message(self, *_words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        found.seen, found.answer = [], 200
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.mark.parametrize("status", [200, 500])
def test_the_password_of_a_url_logs_in_and_is_not_shown(obtain, server, status):
    """Ansible prints the item of a task that has failed, and at -vvv the arguments of each."""
    server.answer = status
    url = f"http://bob:s3cret%40+x@127.0.0.1:{server.server_port}/mine.jar"
    done = obtain(url, hashlib.sha512(b"classes").hexdigest(), "-vvv")
    assert (done.returncode == 0) == (status == 200), done.stdout
    assert "s3cret" not in done.stdout + done.stderr, done.stdout
    login = base64.b64encode(b"bob:s3cret@+x").decode()
    assert ("/mine.jar", f"Basic {login}") in server.seen


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("shape", ["http://s3cret@{}/mine.jar", "http://{}/mine.jar?sig=s3cret"])
def test_a_token_in_a_url_is_not_shown(obtain, server, shape, status):
    """As the user of a login without a password, or in the query: of neither Ansible knows that it is a secret."""
    server.answer = status
    digest = hashlib.sha512(b"classes").hexdigest()
    done = obtain(shape.format(f"127.0.0.1:{server.server_port}"), digest, "-vvv")
    assert "s3cret" not in done.stdout + done.stderr, done.stdout
    works = status == 200 and "@" in shape  # without a login the server lets nobody in
    assert (done.returncode == 0) is works
    told = " ".join(done.stdout.split())
    assert ("[fetch.failed] kafka_plugins: one of the files" in told) is not works, told[-2000:]
