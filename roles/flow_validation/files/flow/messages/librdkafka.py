# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What librdkafka says: off the console, and kept for the sentence that a person is told."""

from __future__ import annotations

import logging


class LastError:
    """What a client's connections suffered last; librdkafka's error_cb, served while it is polled."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, error) -> None:
        # "all brokers down" follows the error that says why; keep the latter
        if error.name() != "_ALL_BROKERS_DOWN" or not self.text:
            self.text = error.str()

    def beside(self, detail: str) -> str:
        """A sentence, and behind it in brackets this, if it does not say so already."""
        return f"{detail} ({self.text})" if self.text and self.text not in detail else detail


def quiet_logger() -> logging.Logger:
    """For its own chatter: what matters of it is told by callbacks and exceptions."""
    logger = logging.getLogger("kafkaops.flow.librdkafka")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    return logger
