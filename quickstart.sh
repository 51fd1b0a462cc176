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

code=0
ansible-playbook "$checkout/site.yml" -e flow_validation=always "$@" || code=$?

if [ "$code" -eq 0 ]; then
    # what was given to this run belongs to those, too: another inventory, other ports
    same=
    [ $# -eq 0 ] || printf -v same ' %q' "$@"
    say ""
    say "The cluster keeps running. In this checkout, after  . .venv/bin/activate:"
    say "  status     ansible-playbook playbooks/status.yml$same"
    say "  prove it   ansible-playbook playbooks/validate.yml$same"
    say "  stop       ansible-playbook playbooks/stop.yml$same"
    say "  start      ansible-playbook playbooks/start.yml$same"
    say "  remove     ansible-playbook playbooks/teardown.yml$same -e confirm=local   (deletes its data, too)"
else
    say ""
    say "Not deployed or not proven (exit code $code); the reason stands above. Running again is safe."
fi
exit "$code"
