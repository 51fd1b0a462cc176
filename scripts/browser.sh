#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
#
# Provides what the tests of the report's page need: Chromium, its driver, and a font.
#
#     scripts/browser.sh    install them where root on Debian may, if they are missing
#
# Exit code 77: cannot be had on this machine, the reason is the last line.
set -euo pipefail

checkout=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
state=$checkout/.ansible/browser
mkdir -p "$state"
# shellcheck source=scripts/packages.sh
. "$checkout/scripts/packages.sh"

# Debian's two packages are of one version; a driver of another one refuses the browser.
provided() {
    command -v chromedriver >/dev/null \
        && { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null
}

provided || apt_install chromium chromium-driver fonts-dejavu-core
