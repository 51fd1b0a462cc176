#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
#
# From nothing to a running, proven Kafka cluster on this machine: Python environment, then
# `ansible-playbook site.yml` with the local inventory, validation always. No root, Docker or systemd.
#
#     ./quickstart.sh [ansible-playbook arguments]
#
# The exit code is ansible-playbook's: 0 only if the cluster is deployed and proven. Safe to run again.
set -euo pipefail

checkout=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=scripts/environment.sh
. "$checkout/scripts/environment.sh"

case ${1:-} in
    -h | --help)
        sed -n 's/^# \{0,1\}//; 5,10p' "${BASH_SOURCE[0]}"
        exit 0
        ;;
esac

provide_environment requirements.txt
provide_java

# Where the verdict of this run will be; a relative directory is the preflight's to refuse.
reports=${KAFKAOPS_HOME:-$HOME/.local/share/kafkaops}/reports
began=$(mktemp)
trap 'rm -f "$began"' EXIT

# The names of the clusters that this run has proven, one a line.
proven() {
    [ -d "$reports" ] || return 0
    find "$reports" -mindepth 3 -maxdepth 3 -name verdict.json -newer "$began" \
        -exec grep -q '"verdict": *"pass"' {} \; -print | sed "s|^$reports/||; s|/.*||" | sort -u
}

code=0
# Last, so that it wins: what is not validated is not proven.
ansible-playbook "$checkout/site.yml" "$@" -e flow_validation=always || code=$?

if [ "$code" -ne 0 ]; then
    say ""
    say "Not deployed or not proven (exit code $code); the reason stands above. Running again is safe."
    exit "$code"
fi
clusters=$(proven)
if [ -z "$clusters" ]; then
    say ""
    say "Nothing was proven: this run has left no verdict below $reports. With --check, --tags, --limit or another" \
        "kafkaops_home, use ansible-playbook site.yml itself."
    exit 1
fi

# What was given to this run belongs to those, too: another inventory, other ports, another home.
same=
[ $# -eq 0 ] || printf -v same ' %q' "$@"
run=ansible-playbook
for name in KAFKAOPS_CACHE KAFKAOPS_HOME; do
    [ -z "${!name:-}" ] || printf -v run '%s=%q %s' "$name" "${!name}" "$run"
done
say ""
say "The cluster keeps running. In this checkout, after  . .venv/bin/activate:"
say "  status     $run playbooks/status.yml$same"
say "  prove it   $run playbooks/validate.yml$same"
say "  stop       $run playbooks/stop.yml$same"
say "  start      $run playbooks/start.yml$same"
for name in $clusters; do
    say "  remove     $run playbooks/teardown.yml$same -e confirm=$name   (deletes its data, too)"
done
