#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
#
# Provides kcat, with which a test of the clients' files reads a cluster.
#
#     scripts/kcat.sh    install it where root on Debian may, if it is missing
#
# Exit code 77: cannot be had on this machine, the reason is the last line.
set -euo pipefail

checkout=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
state=$checkout/.ansible/kcat
mkdir -p "$state"
# shellcheck source=scripts/packages.sh
. "$checkout/scripts/packages.sh"

command -v kcat >/dev/null || command -v kafkacat >/dev/null || apt_install kcat
