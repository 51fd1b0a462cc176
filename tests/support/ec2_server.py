# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""moto's EC2 over HTTP on 127.0.0.1, with what moto has not: tokens, limits, answers that do not come.

Real boto3 talks to it as it would to AWS. moto makes a second machine for a token that it has seen; AWS
does not, so the server answers such a request as AWS does.
"""

from __future__ import annotations

import io
import re
import threading
import urllib.parse
from collections import Counter

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

ERROR = (
    '<?xml version="1.0" encoding="UTF-8"?><Response><Errors><Error><Code>{}</Code><Message>{}</Message>'
    "</Error></Errors><RequestID>none</RequestID></Response>"
)
NO_INSTANCES = (
    '<?xml version="1.0" encoding="UTF-8"?><DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
    "<requestId>none</requestId><reservationSet/></DescribeInstancesResponse>"
)
XML = [("Content-Type", "text/xml")]
ENDED = ("IdempotentInstanceTerminated", "the machine of this token has ended")


class Quiet(WSGIRequestHandler):
    """Nothing is logged."""

    def log(self, *_words):
        """Say nothing."""


class Ec2Server:
    """A server in a thread of its own; `actions` counts the calls by name."""

    def __init__(self, port: int):
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", port, self._answer, True, request_handler=Quiet)
        self.endpoint = f"http://127.0.0.1:{port}"
        self.forget()

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error):
        self._server.shutdown()

    def forget(self):
        """No call was made, no trouble is set up, no token is known."""
        self.actions = Counter()
        self.tokens = {}
        self.ended = set()
        self.hide_instances = False
        self._errors = {}
        self._silence = None
        self.silent = threading.Event()
        self.go_on = threading.Event()

    def fail(self, action, number, code, message):
        """Answer the call of this name and number (from 1) with an error of EC2."""
        self._errors[action, number] = (code, message)

    def fall_silent(self, number):
        """Do the changing call of this number, and do not answer: `silent` says that it was done."""
        self._silence = number

    @property
    def changes(self):
        """How many calls changed something."""
        return sum(count for name, count in self.actions.items() if not name.startswith("Describe"))

    def _answer(self, environ, start_response):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        query = urllib.parse.parse_qs(body.decode("utf-8", "replace"))
        action = query.get("Action", [""])[0]
        if not action:  # moto's own interface
            return self._moto(environ, start_response)
        self.actions[action] += 1
        token = query.get("ClientToken", [""])[0]
        error = self._errors.get((action, self.actions[action]))
        if token in self.ended:
            error = ENDED
        if error:
            start_response("400 Bad Request", XML)
            return [ERROR.format(*error).encode()]
        if action == "DescribeInstances" and self.hide_instances:
            start_response("200 OK", XML)
            return [NO_INSTANCES.encode()]
        if action == "RunInstances" and token in self.tokens:
            start_response("200 OK", XML)
            return [self.tokens[token]]
        if action == "TerminateInstances":
            for name in (each for each in query if each.startswith("InstanceId.")):
                self._token_ends(query[name][0])
        done = b"".join(self._moto(environ, start_response))
        if action == "RunInstances":
            self.tokens[token] = done
        if self._silence == self.changes and not action.startswith("Describe"):
            self.silent.set()
            self.go_on.wait(60)
        return [done]

    def _token_ends(self, instance):
        """The token of this machine is that of one which has ended."""
        for token, answer in self.tokens.items():
            if re.search(rb"<instanceId>" + instance.encode() + rb"</instanceId>", answer):
                self.ended.add(token)
