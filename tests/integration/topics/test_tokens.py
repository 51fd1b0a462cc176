# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log in by tokens of an OpenID provider, with both clients, in both modes; and why there is none."""

from __future__ import annotations

import pytest

from tests.support.outside import free_port
from tests.support.run_module import run_module
from tests.support.token_provider import CLIENTS


@pytest.fixture(params=["zookeeper", "kraft"])
def login(request, tokens, certificate):
    """Options of a connection that works."""
    running = request.getfixturevalue("kraft" if request.param == "kraft" else "cluster")
    return {
        "bootstrap_servers": running.listener_address("TOKEN"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_username": "team:a",
        "sasl_password": CLIENTS["team:a"],
        "sasl_token_url": tokens.url,
        "sasl_token_ca": certificate.certificate,
        "sasl_scope": "kafka.admin other",
        "timeout": 20,
    }


def test_both_clients_log_in(login, tokens, name):
    topic = {"name": name, "replication_factor": 1, "config": {"min.insync.replicas": 1}}
    made = run_module("kafka_topics", {**login, "topics": [topic]})
    assert not made.failed and made.changed, made.msg
    asked = len(tokens.asked)
    # by kafka-python
    told = run_module("kafka_log_dirs_info", login)
    assert not told.failed and told.brokers, told.values
    assert {each["scope"] for each in tokens.asked[asked:]} == {"kafka.admin other"}
    assert CLIENTS["team:a"] not in str(made.values) + str(told.values)
    gone = [{"name": name, "state": "absent"}]
    assert run_module("kafka_topics", {**login, "topics": gone, "allow": ["delete"]}).changed


WRONG = [
    (
        "another secret",
        {"sasl_password": "guessed"},
        "[connection.token] {address}: sasl_token_url={url}: the provider gives no token to user team:a:"
        " HTTP 401: invalid_client, no such secret. Remedy: correct sasl_username",
    ),
    ("another path", {"sasl_token_url": "{url}s"}, "no token to user team:a: HTTP 404"),
    ("nobody there", {"sasl_token_url": "https://127.0.0.1:{free}/t"}, "Connection refused"),
    ("an unknown authority", {"sasl_token_ca": ""}, "certificate verify failed"),
    ("no address of the web", {"sasl_token_url": "file:///etc/passwd"}, "[options.url]"),
    ("no file", {"sasl_token_ca": "/nonexistent.pem"}, "there is no such file"),
    ("no endpoint", {"sasl_token_url": None}, "sasl_token_url"),
    (
        "a token for somebody else",
        {"sasl_username": "stranger", "sasl_password": CLIENTS["stranger"]},
        "[connection.credentials] {address}: wrong credentials: it refuses user stranger by OAUTHBEARER",
    ),
]


@pytest.mark.parametrize(
    "options, words", [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
)
def test_what_is_wrong_is_said(login, tokens, name, options, words):
    facts = {"address": login["bootstrap_servers"], "url": tokens.url, "free": free_port()}
    options = {key: value and value.format(**facts) for key, value in options.items()}
    arguments = {key: value for key, value in {**login, **options}.items() if value is not None}
    refused = run_module("kafka_topics", {**arguments, "topics": [{"name": name}]})
    assert refused.failed and not refused.values.get("changed")
    assert words.format(**facts) in refused.msg, refused.msg
    assert arguments["sasl_password"] not in str(refused.values)
