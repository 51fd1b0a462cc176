# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations under load end with a table of what clients felt of each."""

from tests.support.load import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]  # pytest calls it
