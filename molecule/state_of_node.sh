#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints what a second run must leave alone: processes with their start times, files with their times.
for pid in $(pgrep java | sort -n); do
    sed 's/.*) //' "/proc/$pid/stat" | awk -v pid="$pid" '{print "process", pid, $20}'
done
for path in /etc/kafka* /etc/zookeeper* /opt /srv/programs /srv/settings /etc/systemd/system /etc/security /etc/sysctl.d /etc/hosts; do
    # a lock is taken by every run
    [ -e "$path" ] && find "$path" ! -name .lock -printf '%p %T@ %C@ %m %u:%g\n'
done | sort
