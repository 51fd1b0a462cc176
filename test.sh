#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
#
# Runs the tests: Python environment, then the sessions of noxfile.py, one after the other.
#
#     ./test.sh [part ...]           all parts, or those named
#     ./test.sh --soak [part ...]    the long tests that the first form leaves out
#     ./test.sh --list               the parts
#
# A part that fails does not stop the others. Exit code 0 if none failed, else 1.
set -euo pipefail

checkout=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
cd -- "$checkout"
# shellcheck source=scripts/environment.sh
. "$checkout/scripts/environment.sh"

soak=()
list=false
chosen=()
for argument in "$@"; do
    case $argument in
        -h | --help)
            sed -n 's/^# \{0,1\}//; 5,11p' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        --list) list=true ;;
        --soak) soak=(--soak) ;;
        -*) die "unknown option $argument; see ./test.sh --help" ;;
        *) chosen+=("$argument") ;;
    esac
done

started=$SECONDS
provide_environment requirements-dev.txt
setup_seconds=$((SECONDS - started))

# Name, "*" if a part belongs to a run without arguments, description: from nox's own list.
parts() { NO_COLOR=1 nox --list | sed -nE 's/^([*-]) ([a-z]+) -> (.*)$/\2\t\1\t\3/p'; }
known=$(parts)

if $list; then
    printf '%s\n' "$known" | while IFS=$'\t' read -r name default description; do
        [ "$default" = "*" ] || description="$description (only when named)"
        printf '%-10s %s\n' "$name" "$description"
    done
    exit 0
fi

if [ ${#chosen[@]} -eq 0 ]; then
    while IFS=$'\t' read -r name default _; do
        [ "$default" != "*" ] || chosen+=("$name")
    done <<<"$known"
else
    for part in "${chosen[@]}"; do
        cut -f 1 <<<"$known" | grep -qx -- "$part" \
            || die "no part $part; there are: $(cut -f 1 <<<"$known" | paste -sd ' ' -)"
    done
fi

log=$(mktemp "${TMPDIR:-/tmp}/kafkaops-test.XXXXXX")
trap 'rm -f "$log"' EXIT

# The closing lines of pytest, ansible-lint, ruff, black and ansible-test, and why a part was skipped.
closing_lines() {
    grep -E '^=+ .*(passed|failed|error|skipped|deselected|no tests ran).* in [0-9.]+s|^(SKIPPED|FAILED|ERROR) |^Passed: |^Failed: |^All checks passed|^Found [0-9]+ error|files? would be |^(ERROR|FATAL): The [0-9]+ sanity' \
        <"$log" | sed -E 's/\x1b\[[0-9;]*m//g' || true
}

failed=()
results="set-up  $setup_seconds s"$'\n'
for part in "${chosen[@]}"; do
    printf '\n===== %s =====\n' "$part"
    started=$SECONDS
    code=0
    nox -R -s "$part" -- ${soak[@]+"${soak[@]}"} 2>&1 | tee "$log" || code=$?
    seconds=$((SECONDS - started))
    if [ "$code" -ne 0 ]; then
        failed+=("$part")
        word=FAILED
    elif grep -q "^SKIPPED $part: " "$log"; then
        word=skipped
    else
        word=passed
    fi
    results+="$part  $word  $seconds s"$'\n'
    results+=$(closing_lines | sed 's/^/    /')$'\n'
    printf '%s: %s, %s s\n' "$part" "$word" "$seconds"
done

printf '\n===== summary =====\n'
printf '%s' "$results" | grep -v '^$'
if [ ${#failed[@]} -gt 0 ]; then
    printf 'FAILED: %s\n' "${failed[*]}"
    exit 1
fi
printf 'OK: %s, %s s\n' "${chosen[*]}" "$SECONDS"
