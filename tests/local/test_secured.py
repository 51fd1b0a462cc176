# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster with TLS, names and passwords, and an authorizer: deployed, proven, closed to everybody else."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.local.certificates import make_certificates
from tests.local.support import LocalCluster, Unsafe, files_below
from tests.support import collection_finder, verdict_schema
from tests.support.outside import wait_until

pyspark = pytest.importorskip("pyspark")
USERS = ("broker", "admin", "alice")
QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# In ZooKeeper's configuration, in options of both JVMs, in the brokers' environment.
OPTION_SECRETS = [secrets.token_hex(12) for dummy in range(4)]


@pytest.fixture(scope="module")
def passwords():
    """Passwords with what breaks naive quoting in JAAS, properties and YAML."""
    return {user: secrets.token_urlsafe(9) + " \"$\\'#=:{{" + user for user in USERS}


@pytest.fixture(scope="module")
def secured(next_offset, passwords):
    """The secured cluster; `secured.deployed` is the Run that made it, at -vvv with --diff."""
    with LocalCluster(next_offset(), inventory="tests/local/inventories/secured") as cluster:
        folder = cluster.overlay / "certificates"
        folder.mkdir()
        make_certificates(folder, cluster.brokers)
        cluster.configure(
            "kafka",
            secured_certificates=str(folder),
            secured_passwords={user: Unsafe(text) for user, text in passwords.items()},
            kafka_jvm_options=[*QUICK, f"-Dmy.password={OPTION_SECRETS[2]}"],
            kafka_environment={"MY_PASSWORD": OPTION_SECRETS[3], "MINE": "yes"},
            flow_validation_records=20000,
            flow_validation_probes=["min-isr", "compaction", "retention"],
        )
        cluster.configure(
            "zookeeper",
            zookeeper_config={"ssl.quorum.keyStore.password": OPTION_SECRETS[0]},
            zookeeper_environment={"MY_PASSWORD": OPTION_SECRETS[3], "MINE": "yes"},
            zookeeper_jvm_options=[*QUICK, f"-Dmy.password={OPTION_SECRETS[1]}"],
        )
        cluster.certificates = folder
        cluster.client_settings = as_user(folder, "admin", passwords["admin"])
        cluster.tool_settings = java_settings(folder, "admin", passwords["admin"])
        cluster.deployed = cluster.deploy("-vvv", "--diff", validation="always")
        yield cluster


def as_user(folder, name, password):
    """Return settings of confluent-kafka for one user."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": name,
        "sasl.password": password,
        "ssl.ca.location": str(folder / "ca.crt"),
    }


def java_settings(folder, name, password):
    """Return settings of Kafka's tools for one user, escaped as a properties file wants it."""

    def quoted(text):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    jaas = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        f" username={quoted(name)} password={quoted(password)};"
    )
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": jaas.replace("\\", "\\\\"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.crt"),
    }


def refusals(settings):
    """Return (the names of the errors that a client reports, whether it got metadata)."""
    errors = []
    quiet = {"log_level": 0, "reconnect.backoff.max.ms": 1000}
    client = Producer({**settings, **quiet, "error_cb": lambda error: errors.append(error.name())})

    def answered():
        client.poll(0.1)
        try:
            return bool(client.list_topics(timeout=2).topics)
        except KafkaException:
            return False

    # Brokers start together and are tried in turn: what all of them said is what counts.
    wait_until(lambda: answered() or "_ALL_BROKERS_DOWN" in errors, 90, "an answer or a refusal")
    return errors, answered()


def test_deployed_and_proven(secured):
    """site.yml ends with a verdict, through the same doors that everybody has to use."""
    verdict = verdict_schema.read(secured.home / "reports/secured/latest/verdict.json")
    assert verdict["verdict"] == "pass"
    assert verdict["counts"]["acked"] == verdict["counts"]["read"] == 20000
    (internal,) = verdict["listeners"]  # the other one is that of the run
    assert internal["name"] == "INTERNAL"
    assert [each["trouble"] for each in internal["brokers"]] == [None, None]
    # Java's admin client for the one, librdkafka for the other
    assert [(p["name"], p["violations"], p["unclear"]) for p in verdict["probes"]] == [
        ("min-isr", 0, None),
        ("compaction", 0, None),
        ("retention", 0, None),
    ]
    written = [path for path in files_below(secured.home) if path.name.startswith(".client")]
    assert not written, "passwords"
    assert "orders" in secured.tool("kafka-topics.sh", "--list").split()


def test_records_flow_with_credentials(secured):
    """The control group of the refusals below: with name, password and authority it works."""
    errors, welcome = refusals(secured.client())
    assert welcome and not errors
    secured.tool("kafka-console-producer.sh", "--topic", "orders", stdin="one\ntwo\n")
    said = secured.tool(
        "kafka-console-consumer.sh",
        *("--topic", "orders", "--from-beginning", "--max-messages", 2, "--timeout-ms", 60000),
    )
    assert {"one", "two"} <= set(said.split())


def test_no_credentials_no_entry(secured):
    """Plain text, TLS without a name: no metadata, let alone records."""
    where = {"bootstrap.servers": secured.bootstrap_servers}
    _errors, welcome = refusals(where)
    assert not welcome
    encrypted = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(secured.certificates / "ca.crt"),
    }
    _errors, welcome = refusals({**where, **encrypted})
    assert not welcome


def test_wrong_password_no_entry(secured):
    """Turned away as what it is: a failed authentication."""
    wrong = as_user(secured.certificates, "admin", "not the password")
    errors, welcome = refusals({"bootstrap.servers": secured.bootstrap_servers, **wrong})
    assert not welcome and "_AUTHENTICATION" in errors


def test_unknown_authority_not_trusted(secured, tmp_path, passwords):
    """A client that knows another authority refuses the brokers: TLS is not only for show."""
    make_certificates(tmp_path, [])
    settings = as_user(tmp_path, "admin", passwords["admin"])
    errors, welcome = refusals({"bootstrap.servers": secured.bootstrap_servers, **settings})
    assert not welcome and "_SSL" in errors


def test_user_without_acl(secured, passwords):
    """A known user may come in, and neither write nor read; after an ACL it may."""
    settings = as_user(secured.certificates, "alice", passwords["alice"])
    settings["bootstrap.servers"] = secured.bootstrap_servers
    assert produce(settings, "orders") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert consume(settings, "orders") in (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    )
    allow = ("--add", "--allow-principal", "User:alice")
    secured.tool("kafka-acls.sh", *allow, "--operation", "Write", "--topic", "orders")
    # ACLs reach each broker through ZooKeeper, one by one
    wait_until(lambda: produce(settings, "orders") is None, 60, "alice may write")


def test_a_validation_that_may_not_read_groups_says_so_before_it_writes(
    secured, passwords, tmp_path
):
    allow = ("--add", "--allow-principal", "User:alice", "--topic", "orders")
    rights = ("--operation", "Write", "--operation", "DescribeConfigs")
    secured.tool("kafka-acls.sh", *allow, *rights)
    user = tmp_path / "alice.properties"
    settings = java_settings(secured.certificates, "alice", passwords["alice"])
    user.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    before = written(secured, "orders")
    run = secured.run(
        [
            *(secured.python, secured.checkout / "roles/flow_validation/files/job.py", "run"),
            *(f"--bootstrap-servers={secured.bootstrap_servers}", f"--command-config={user}"),
            *("--topic=orders", f"--ledger={tmp_path}/ledger", f"--output={tmp_path}"),
        ],
        code=3,
    )
    assert "could not run: the consumer group kafkaops-flow-" in run.text, run.text
    assert "cannot commit: " in run.text and "authorization failed" in run.text.lower(), run.text
    assert "or judge without groups" in run.text
    assert written(secured, "orders") == before


def written(cluster, topic):
    """Return the end offset of each partition."""
    consumer = Consumer(cluster.client(group_id="none"))
    try:
        return [
            consumer.get_watermark_offsets(TopicPartition(topic, number), 30)[1]
            for number in cluster.partitions(topic)
        ]
    finally:
        consumer.close()


def produce(settings, topic):
    """Write one record; return None, or the code of its error."""
    outcome = []
    producer = Producer({**settings, "delivery.timeout.ms": 30000})
    producer.produce(topic, b"x", callback=lambda error, _message: outcome.append(error))
    producer.flush(60)
    return outcome[0] and outcome[0].code()


def consume(settings, topic):
    """Try to read as a group of its own; return the code of the first error."""
    consumer = Consumer({**settings, "group.id": "curious", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = wait_until(lambda: consumer.poll(1), 60, "an answer to alice")
        return message.error() and message.error().code()
    finally:
        consumer.close()


def test_secrets_stay_secret(secured, passwords):
    """Neither the log of a run nor its diff shows one, and files that hold one are for the owner's group."""
    keys = [secured.certificates.joinpath(f"{name}.key").read_text() for name in secured.brokers]
    hidden = [*passwords.values(), *(key.splitlines()[1] for key in keys), *OPTION_SECRETS]
    assert not [secret for secret in hidden if secret in secured.deployed.text]
    # without what YAML or JSON may have escaped
    assert not [secret for secret in hidden if secret[:12] in secured.deployed.text]
    assert "listeners=" in secured.deployed.text, "the diff shows the rest"
    holding = []
    for path in files_below(secured.home):
        # indexes are large, hollow, and hold numbers
        if "index" in path.suffix or "/opt/" in str(path):
            continue
        with contextlib.suppress(FileNotFoundError):
            plain = stat.S_ISREG(path.lstat().st_mode)
            text = path.read_bytes().decode(errors="replace") if plain else ""
            if any(secret[:12] in text for secret in hidden):
                holding.append(path)
                assert not path.stat().st_mode & 0o027, oct(path.stat().st_mode) + str(path)
    names = {path.name for path in holding}
    assert names == {"keystore.pem", "server.properties", "zoo.cfg", "jvm.options", "launch"}


@pytest.fixture(scope="module")
def client_folder(secured, passwords, tmp_path_factory):
    """What client.yml has written for the listener CLIENTS, with the password, somewhere else than by default."""
    folder = tmp_path_factory.mktemp("clients")
    asked = ("-e", f"client_to={folder}", "-e", "client_secrets=true", "-e", "listener=CLIENTS")
    run = secured.play("client.yml", "-vvv", "--diff", *asked)
    assert passwords["admin"][:12] not in run.text
    assert run.changed() > 0
    again = secured.play("client.yml", "--check", "--diff", *asked)
    assert again.changed() == 0, again.text
    assert [path.name for path in folder.iterdir()] == ["CLIENTS"]
    return folder / "CLIENTS"


@pytest.fixture(scope="module")
def client_topics(client_folder):
    """Two topics of these tests, made with the written settings."""
    admin = AdminClient(json.loads((client_folder / "librdkafka.json").read_text()))
    names = ["client-files-lines", "client-files-views"]
    for future in admin.create_topics([NewTopic(name, 2, 2) for name in names]).values():
        future.result(60)
    return names


def test_client_files_without_secrets_stand_below_home_and_have_none(secured, passwords):
    """For each listener with an audience; what --check has told is what is done."""
    told = secured.play("client.yml", "--check", "--diff")
    folder = secured.home / "clients/secured"
    assert not folder.exists()
    assert "Fill in the password of admin." in told.text
    run = secured.play("client.yml", "--diff")
    assert run.changed() == told.changed() > 0
    assert f"settings for INTERNAL, CLIENTS: {folder}" in " ".join(run.text.split())
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) == 10
    for path in files:
        assert not [text for text in passwords.values() if text[:12] in path.read_text()]


@pytest.mark.soak  # the same in the unit tests, without a playbook
def test_client_files_of_somebody_unknown(secured):
    run = secured.play("client.yml", "-e", "user=mallory", code=2)
    assert "[client.user] user=mallory: " in run.text and "one of: admin, alice." in run.text


def test_client_files_open_the_door_to_kafkas_tools_and_kcat(secured, client_folder, client_topics):
    """Files that hold a password are for their owner; each client reads what another one has written."""
    modes = {path.name: path.stat().st_mode & 0o777 for path in client_folder.iterdir()}
    of_owner = ("client.properties", "librdkafka.json", "librdkafka.properties")
    assert modes == {**dict.fromkeys(of_owner, 0o600), "client.py": 0o644, "ca.crt": 0o644}
    lines = client_topics[0]
    own = {"bootstrap": secured.bootstrap_servers, "settings": client_folder / "client.properties"}
    java(secured, "producer", lines, own, stdin="from-java\n")
    assert "from-java" in java(
        secured, "consumer", lines, own, "--from-beginning", "--max-messages", "1"
    )
    said = run_client(secured, client_folder, "client.py")
    assert [line.split(" at ")[0] for line in said.splitlines()[1:]] == ["broker 1", "broker 2"]


def test_client_files_of_kcat(client_folder, client_topics):
    kcat = shutil.which("kcat") or shutil.which("kafkacat")
    if not kcat:
        pytest.skip("no kcat on PATH; scripts/kcat.sh installs it")
    command = [kcat, "-F", "librdkafka.properties", "-L", "-J", "-m", "30"]
    done = subprocess.run(
        command, cwd=client_folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert client_topics[0] in {each["topic"] for each in json.loads(done.stdout)["topics"]}


def output_of(command, timeout, stdin="", **environment):
    """Run a command to its end, which is a good one; return what it said."""
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def java(cluster, kind, topic, own, *arguments, stdin=""):
    """Run a console client with a file of settings; return what it said."""
    command = [
        *(str(cluster.release() / f"bin/kafka-console-{kind}.sh"), "--topic", topic),
        *("--bootstrap-server", own["bootstrap"], f"--{kind}.config", str(own["settings"])),
        *arguments,
    ]
    return output_of(command, 120, stdin, KAFKA_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def run_client(cluster, folder, program, *arguments, stdin="", environment=None):
    """Run a Python program to its end; return what it said."""
    command = [str(cluster.python), str(folder / program), *map(str, arguments)]
    return output_of(command, 180, stdin, **(environment or {}))


def test_examples_write_and_read_and_end_cleanly_when_told_to(
    secured, client_folder, client_topics, tmp_path
):
    """SIGTERM: the producer delivers what it has taken, the consumer commits and leaves."""
    examples, settings = secured.checkout / "examples", client_folder / "librdkafka.json"
    lines = client_topics[0]
    writing = subprocess.Popen(
        [str(secured.python), str(examples / "producer.py"), str(settings), lines],
        **dict(stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True),
    )
    writing.stdin.write("".join(f"key-{number % 7}\tvalue-{number}\n" for number in range(1000)))
    writing.stdin.flush()  # and no end of input: only the signal ends it
    wait_until(
        lambda: written(secured, lines) >= [1, 1] and sum(written(secured, lines)) >= 1000,
        60,
        "records",
    )
    writing.send_signal(signal.SIGTERM)
    _out, said = writing.communicate(timeout=60)
    assert writing.returncode == 0 and "1000 of 1000 records acknowledged" in said

    output = tmp_path / "read"

    def read_until(enough):
        with output.open("a") as stream:
            reading = subprocess.Popen(
                [
                    str(secured.python),
                    str(examples / "consumer.py"),
                    str(settings),
                    lines,
                    "client-files",
                ],
                **dict(stdout=stream, stderr=subprocess.PIPE, text=True),
            )
            wait_until(enough, 60, "records came")
            reading.send_signal(signal.SIGTERM)
            _out, said = reading.communicate(timeout=60)
        assert reading.returncode == 0, said
        return said

    read_until(lambda: output.read_text().count("\tvalue-") == 1000)
    before = sum(written(secured, lines))
    run_client(secured, examples, "producer.py", settings, lines, stdin="one more\n")
    # begins behind what the first one has committed when it was told to end
    said = read_until(lambda: "\tone more\n" in output.read_text())
    assert "\n1 records processed" in f"\n{said}" and sum(written(secured, lines)) == before + 1


SUBMIT = (
    "--master local[1] --conf spark.sql.shuffle.partitions=1 --conf spark.ui.enabled=false"
    " --conf spark.sql.session.timeZone=UTC --conf spark.driver.host=127.0.0.1"
    " --conf spark.driver.bindAddress=127.0.0.1"
)


def connector_jars():
    """The jars that the deployment's validation has used."""
    cache = Path(os.environ.get("KAFKAOPS_CACHE") or Path.home() / ".cache/kafkaops")
    return sorted(map(str, cache.glob(f"spark/{pyspark.__version__}_*/*.jar")))


@pytest.mark.soak  # Spark starts once more
def test_page_views_are_counted_by_window(secured, client_folder, client_topics, tmp_path):
    """What a window had is written once; a late view and what is no view are left out."""
    at = [("/a", "13:00:01"), ("/b", "13:00:02"), ("/a", "13:00:59"), ("/a", "13:01:00")]
    views = [json.dumps({"page": page, "at": f"2026-11-25T{time}Z"}) for page, time in at]
    closing = json.dumps({"page": "/end", "at": "2026-11-25T14:00:00Z"})
    examples = secured.checkout / "examples"
    topic = client_topics[1]
    settings = client_folder / "librdkafka.json"
    submit = {"PYSPARK_SUBMIT_ARGS": f"{SUBMIT} --jars {','.join(connector_jars())} pyspark-shell"}
    text = "".join(f"{line}\n" for line in [*views, "no view", closing])
    run_client(secured, examples, "producer.py", settings, topic, stdin=text)
    arguments = (client_folder / "client.properties", topic, tmp_path / "views", "--once")
    run_client(secured, examples, "page_views.py", *arguments, environment=submit)
    rows = [
        json.loads(line)
        for path in (tmp_path / "views/counts").glob("*.json")
        for line in path.read_text().splitlines()
    ]
    assert sorted((row["start"][11:16], row["page"], row["views"]) for row in rows) == [
        ("13:00", "/a", 2),
        ("13:00", "/b", 1),
        ("13:01", "/a", 1),
    ]


def test_processes_have_their_secrets_and_ps_does_not_show_them(secured):
    assert secured.processes()
    for process in secured.processes().values():
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert not [secret for secret in OPTION_SECRETS if secret.encode() in command]
        environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        wanted = {b"MINE=yes", b"MY_PASSWORD=" + OPTION_SECRETS[3].encode()}
        assert wanted <= set(environment)


@pytest.mark.soak
def test_second_run_changes_nothing(secured):
    """Certificates, passwords and listeners compare equal to themselves; nothing restarts."""
    before = secured.processes()
    run = secured.deploy("--check", "--diff")
    assert run.changed() == 0, run.text
    run = secured.deploy()
    assert run.changed() == 0, run.text
    assert secured.processes() == before


@pytest.mark.soak  # a cluster of its own
def test_scram_users_exist_before_the_first_broker_starts(next_offset, passwords):
    """Brokers that talk SCRAM to each other need their own credentials first: written to ZooKeeper."""
    with LocalCluster(next_offset(), inventory="inventories/local-1x1") as cluster:
        port = 9092 + cluster.offset

        def user(name, password):
            return {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": name,
                "sasl.password": password,
            }

        secret = {name: Unsafe(text) for name, text in passwords.items()}
        settings = {
            "kafka_listeners": [
                {
                    "name": "LOCAL",
                    "port": port,
                    "protocol": "SASL_PLAINTEXT",
                    "bind": "127.0.0.1",
                    "advertised": "127.0.0.1",
                    "audience": ["brokers", "clients"],
                }
            ],
            "kafka_client_security": {
                key.replace(".", "_"): value
                for key, value in user("alice", secret["alice"]).items()
            },
        }

        def with_users(users):
            logins = {
                "mechanisms": ["SCRAM-SHA-512"],
                "inter_broker_mechanism": "SCRAM-SHA-512",
                "inter_broker_user": "broker",
                "inter_broker_password": secret["broker"],
            }
            cluster.configure("kafka", kafka_sasl={**logins, "users": users}, **settings)

        with_users({"alice": secret["alice"]})
        run = cluster.deploy(validation="always")
        # without what YAML or JSON would have escaped
        assert not [text for text in passwords.values() if text[:12] in run.text]
        for name in ("broker", "alice"):
            errors, welcome = refusals(cluster.client() | user(name, passwords[name]))
            assert welcome and not errors
        for name, password in [("alice", passwords["broker"]), ("mallory", "x"), ("alice", "")]:
            errors, welcome = refusals(cluster.client() | user(name, password or "wrong"))
            assert not welcome and "_AUTHENTICATION" in errors
        assert cluster.deploy().changed() == 0

        # On the running cluster: a new user, then another password. No broker restarts.
        before = cluster.processes()
        for password in (passwords["broker"], passwords["admin"]):
            with_users({"alice": secret["alice"], "bob": Unsafe(password)})
            assert cluster.deploy("--check").changed() == 1
            assert refusals(cluster.client() | user("bob", password))[0]
            run = cluster.deploy("-vvv", "--diff")
            assert run.changed() == 1 and password[:12] not in run.text
            assert refusals(cluster.client() | user("bob", password)) == ([], True)
        assert cluster.deploy().changed() == 0
        assert cluster.processes() == before


@pytest.mark.soak  # the module's own tests are in tests/integration/state
def test_hosts_of_clients_are_asked_what_they_reach(secured):
    """A group in the inventory is all that it takes; its hosts are no members of the cluster."""
    hosts = secured.overlay / "hosts.yml"
    before = hosts.read_text()
    # a host with a login of its own is asked with that one
    own = {"sasl_mechanism": "PLAIN", "sasl_username": "nobody", "sasl_password": "wrong"}
    own["ssl_ca"] = str(secured.certificates / "ca.crt")
    clients = {"app-1": {}, "app-2": {"kafka_client_security": own}}
    hosts.write_text(json.dumps({"all": {"children": {"kafka_clients": {"hosts": clients}}}}))
    try:
        run = secured.deploy(code=2)
    finally:
        hosts.write_text(before)
    assert "Clients on app-1 reach every broker" in run.text
    assert "[reach.login] app-2: listener" in run.text and "app-1: listener" not in run.text
    assert run.changed() == 0, run.text


def test_the_probe_of_listeners_judges_certificates(secured, passwords, tmp_path):
    """The right name and authority are fine; another name, another authority are told."""
    collection_finder.install()
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.wire import look

    make_certificates(tmp_path, [])

    def probed(host="127.0.0.1", authority=secured.certificates):
        port = secured.port("kafka-2")
        login = {
            "sasl_mechanism": "PLAIN",
            "sasl_username": "admin",
            "sasl_password": passwords["admin"],
            "ssl_ca": (authority / "ca.crt").read_text(),
        }
        return look(host, port, 2, "SASL_SSL", login, 20)

    seen = probed()
    assert not seen.failed, seen
    assert seen.answered_by == 2 and seen.brokers[2] == f"127.0.0.1:{secured.port('kafka-2')}"
    other = probed("localhost")  # the certificate is for the address alone
    assert (other.failed, other.detail) == ("certificate", "it is for 127.0.0.1")
    assert probed(authority=tmp_path).failed == "certificate"
