# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets are hidden wherever they stand; what is none stays readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import (
    HIDDEN,
    SECRET_NAME_ENDS,
    SECRET_NAME_PARTS,
    is_secret,
    masked,
    masked_option,
    masked_text,
)


@pytest.mark.parametrize(
    "name",
    [
        "ssl.keystore.password",
        "ssl.quorum.keyStore.password",
        "javax.net.ssl.keyStorePassword",
        "listener.name.internal.plain.sasl.jaas.config",
        "rsm.config.fs.s3a.access.key",
        "rsm.config.fs.s3a.secret.key",
        "kafka_ssl_key_password",
        "AWS_SECRET_ACCESS_KEY",
        "delegation.token.master.key",
        "zookeeper.DigestAuthenticationProvider.superDigest",
        "ssl.keystore.passphrase",
        "VAULT_TOKEN",
        "AWS_SESSION_TOKEN",
        "X-Amz-Security-Token",
        "accessToken",
        "DB_PWD",
        "REGISTRY_CREDENTIALS",
        "X-Amz-Credential",
        "X-Amz-Signature",
        "sig",
        "GCP_PRIVATE_KEY",
        "rsm.config.storage.gcs.private.key",
        "privateKey",
        "storage.encryption.key",
        "DATA_ENCRYPTION_KEY",
        "com.x.bindpass",
        "DB_PASS",
    ],
)
def test_secrets_are_known_by_name(name):
    assert is_secret(name)


def test_the_names_of_secrets_are_documented():
    page = Path(__file__).resolve().parents[4] / "docs" / "security.md"
    text = page.read_text(encoding="utf-8")
    assert [name for name in SECRET_NAME_PARTS + SECRET_NAME_ENDS if f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    "name",
    [
        "num.io.threads",
        "delegation.token.max.lifetime.ms",
        "delegation.token.expiry.time.ms",
        "sasl.oauthbearer.token.endpoint.url",
        "ssl.keystore.location",
        "config",
        "key",
        "host",
        "encryption.keystore.location",
        "passive",
    ],
)
def test_other_settings_stay_readable(name):
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://bob:s3cret@mirror/x", f"https://bob:{HIDDEN}@mirror/x"),
        ("https://bob:p@ss@host/x@y", f"https://bob:{HIDDEN}@host/x@y"),
        # not as a URL has to have it, and so nobody can use it; but somebody will have pasted it
        ("https://bob:hun/ter2@host/x", f"https://bob:{HIDDEN}@host/x"),
        ("https://bob:h#u?n@host/x (no)", f"https://bob:{HIDDEN}@host/x (no)"),
        (f"https://bob:{HIDDEN}@host/x@y", f"https://bob:{HIDDEN}@host/x@y"),
        ("https://mirror:8443/x@y", "https://mirror:8443/x@y"),
        ("http://a:80,http://b:81/x@y", "http://a:80,http://b:81/x@y"),
        ("https://ghp_x@host/x", f"https://{HIDDEN}@host/x"),
        ("https://mirror:8443/x", "https://mirror:8443/x"),
        ("https://mirror/x@y", "https://mirror/x@y"),
        ("zk-1:2181,zk-2:2181/kafka@x", "zk-1:2181,zk-2:2181/kafka@x"),
        ("https://host/x?X-Amz-Signature=ab12", f"https://host/x?X-Amz-Signature={HIDDEN}"),
        ("https://host/x?sv=1&sig=ab%2B&token=cd", f"https://host/x?sv=1&sig={HIDDEN}"),
        ("-Dfoo.token=abc", f"-Dfoo.token={HIDDEN}"),
        ("-Dtoken.file=/run/x", "-Dtoken.file=/run/x"),
        ("-Djavax.net.ssl.keyStorePassword=abc", f"-Djavax.net.ssl.keyStorePassword={HIDDEN}"),
        ("-Xmx1g -Dssl.password=a -Da=b", f"-Xmx1g -Dssl.password={HIDDEN} -Da=b"),
        ("-javaagent:a.jar=7070:password=a", f"-javaagent:a.jar=7070:password={HIDDEN}"),
        ("-agentpath:a.so=x=1,key.password=a", f"-agentpath:a.so=x=1,key.password={HIDDEN}"),
        ('jaas.config="a b"; x=1', f"jaas.config={HIDDEN}; x=1"),
        ("num.io.threads 8 -> 16", "num.io.threads 8 -> 16"),
        ('{"sasl_password": "hunter2", "a": 1}', f'{{"sasl_password": {HIDDEN}, "a": 1}}'),
        ('{"x": {"sasl_password": "a\\"b c"}}', f'{{"x": {{"sasl_password": {HIDDEN}}}}}'),
        ("{sasl_password: hunter2}", f"{{sasl_password: {HIDDEN}"),
        ('{"credentials": {"bob": "x"}}', f'{{"credentials": {HIDDEN}'),
        ("{'passwords': ['x', 'y']}", f"{{'passwords': {HIDDEN}"),
        (r'"{\"password\": \"a b\", \"n\": 1}"', rf'"{{\"password\": {HIDDEN}, \"n\": 1}}"'),
        ('password="never closed, x', f"password={HIDDEN}"),
        ("a=" * 5000 + "password=x", "a=" * 5000 + f"password={HIDDEN}"),
        ("password=", "password="),
        ("-----BEGIN RSA PRIVATE KEY-----\nab\n-----END RSA PRIVATE KEY-----\nx", f"{HIDDEN}\nx"),
        ("x -----BEGIN PRIVATE KEY-----\nab", f"x {HIDDEN}"),
        ("-----BEGIN CERTIFICATE-----\nab", "-----BEGIN CERTIFICATE-----\nab"),
    ],
)
def test_secrets_inside_text_are_hidden(text, shown):
    assert masked_text(text) == shown


@pytest.mark.parametrize("value", ["Gx,7qTAIL;Zz", "a b c", "a'b", 'a"b" c', "a=b", "{a}", "a]"])
@pytest.mark.parametrize(
    "option",
    ["-Djavax.net.ssl.keyStorePassword=", "-javaagent:a.jar=7070:pass=", "-Dcom.x.bindpass="],
)
def test_the_value_of_an_option_is_hidden_to_its_end(option, value):
    assert masked_option(option + value) == f"{option}{HIDDEN}"
    assert masked("kafka_jvm_options", [option + value]) == [f"{option}{HIDDEN}"]
    assert masked_option(masked_option(option + value)) == f"{option}{HIDDEN}"


@pytest.mark.parametrize(
    "option, shown",
    [
        ("-Xmx1g", "-Xmx1g"),
        ("-Dtoken.file=/run/x,y", "-Dtoken.file=/run/x,y"),
        ("-Drepo=https://bob:x@host/a;b", f"-Drepo=https://bob:{HIDDEN}@host/a;b"),
        ("-Da.password=", "-Da.password="),
        ("-javaagent:secret agent=x,y", f"-javaagent:secret agent={HIDDEN}"),
    ],
)
def test_an_option_without_a_secret_stays_readable(option, shown):
    assert masked_option(option) == shown


def test_a_line_of_a_units_environment_is_hidden_to_its_end():
    options = {"Service": {"Environment": ["A=1", "X_PASSWORD=a,b"], "TasksMax": 1}}
    assert masked("kafka_unit_options", options) == {
        "Service": {"Environment": ["A=1", f"X_PASSWORD={HIDDEN}"], "TasksMax": 1}
    }


def test_structures_keep_their_shape():
    settings = {
        "ssl.keystore.password": "abc",
        "options": ["-Xmx1g", "-Dkey.password=abc"],
        "deep": {"secret.key": "abc", "empty.password": "", "n": 3},
    }
    assert masked("kafka_config", settings) == {
        "ssl.keystore.password": HIDDEN,
        "options": ["-Xmx1g", f"-Dkey.password={HIDDEN}"],
        "deep": {"secret.key": HIDDEN, "empty.password": "", "n": 3},
    }


@pytest.mark.parametrize(
    "name, value, shown",
    [
        ("password", {"value": "abc"}, {HIDDEN: HIDDEN}),
        ("password", {"abc": None}, {HIDDEN: None}),
        ("password", ["abc", ["def"], {"a": "ghi"}], [HIDDEN, [HIDDEN], {HIDDEN: HIDDEN}]),
        ("password", [], []),
        ("password", {}, {}),
        ("update_password", True, True),
        # Names of settings, whatever they are called; what they hold is a secret.
        ("secrets", {"a.b": "abc", "c": {"d": "abc"}}, {"a.b": HIDDEN, "c": {HIDDEN: HIDDEN}}),
        ("secrets", {"a.b": None}, {"a.b": None}),
        ("secrets", ["abc"], [HIDDEN]),
        (
            "kafka_users",
            [{"name": "d", "password": {"v": "abc"}}],
            [{"name": "d", "password": {HIDDEN: HIDDEN}}],
        ),
        ("kafka_environment", {"A_PASSWORD": {"x": "abc"}}, {"A_PASSWORD": {HIDDEN: HIDDEN}}),
    ],
)
def test_of_a_secret_only_its_kind_is_seen(name, value, shown):
    """A mapping where a text belongs is a mistake to tell, and its keys say nothing about what is in it."""
    assert masked(name, value) == shown
