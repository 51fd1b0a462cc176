# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
#
# What a test needs from the machine, for the scripts that provide it. Sourced, with `state` set to a
# directory for logs. Their exit code 77: cannot be had on this machine, the reason is the last line.

: "${state:?a directory for logs}"

say() { printf '%s\n' "$*" >&2; }

cannot() {
    say "$*"
    exit 77
}

# apt needs root and Debian; its messages only when it fails. Parts that run side by side wait for each other.
apt_install() {
    local log=$state/apt.log
    [ "$(id -u)" = 0 ] || cannot "no $1, and installing it needs root"
    command -v apt-get >/dev/null || cannot "no $1, and no apt-get to install it with"
    say "Installing $*."
    exec 9>"$state/../apt.lock"
    flock 9
    { apt-get update --quiet && DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes \
        --no-install-recommends "$@"; } >"$log" 2>&1 \
        || cannot "apt-get could not install $*: $(tail -n 1 "$log")"
    exec 9>&-
}
