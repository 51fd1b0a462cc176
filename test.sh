#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
#
# Runs the tests: Python environment, then the sessions of noxfile.py.
#
#     ./test.sh quick                before each commit: static, unit, sanity, and a local cluster with a kill
#     ./test.sh [part ...]           all parts, or those named
#     ./test.sh --soak [part ...]    the long tests that the first two leave out
#     ./test.sh --list               the parts
#
# A part that fails does not stop the others. Exit code 0 if none failed, else 1.
# Parts run in two lanes, of which one shows its output afterwards; the long tests run one by one.
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
            sed -n 's/^# \{0,1\}//; 5,13p' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        --list) list=true ;;
        --soak) soak=(--soak) ;;
        -*) die "unknown option $argument; see ./test.sh --help" ;;
        quick) chosen+=(static unit sanity smoke) ;;
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
    printf '%-10s %s\n' quick "Before each commit: static, unit, sanity, smoke; under 8 minutes."
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

# Two lanes, one for each of two cores. The one begins with what tells quickly; the other does what needs Spark and
# local clusters, then takes from the end what the first has not begun, where the short parts are: so both end at
# about the same time. What is measured has the machine for itself.
quick=() long=() short=() beside=() last=()
for part in "${chosen[@]}"; do
    case $part in
        static | unit | sanity) quick+=("$part") ;;
        molecule | state | topics | quickstart) long+=("$part") ;;
        spark | local) beside+=("$part") ;;
        smoke | bench) last+=("$part") ;;
        *) short+=("$part") ;;
    esac
done
first=(${quick[@]+"${quick[@]}"} ${long[@]+"${long[@]}"} ${short[@]+"${short[@]}"})
if [ ${#soak[@]} -gt 0 ]; then
    first=() beside=() last=("${chosen[@]}")
fi
backwards=()
for part in ${first[@]+"${first[@]}"}; do
    backwards=("$part" ${backwards[@]+"${backwards[@]}"})
done

state=$(mktemp -d "${TMPDIR:-/tmp}/kafkaops-test.XXXXXX")
lane=""
# The lane is a process group of its own: interrupted like this one, it ends its clusters, too.
end_lane() {
    [ -z "$lane" ] || ! kill -INT -- "-$lane" 2>/dev/null || wait "$lane" || true
}
trap 'end_lane; rm -rf "$state"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The closing lines of pytest, ansible-lint, ruff, black and ansible-test, and why a part was skipped.
closing_lines() {
    grep -E '^=+ .*(passed|failed|error|skipped|deselected|no tests ran).* in [0-9.]+s|^(SKIPPED|FAILED|ERROR) |^Passed: |^Failed: |^All checks passed|^Found [0-9]+ error|files? would be |^(ERROR|FATAL): The [0-9]+ sanity' \
        <"$1" | sed -E 's/\x1b\[[0-9;]*m//g' || true
}

# Run those parts that no lane has taken; of each one leaves the output and a line "WORD SECONDS" in $state.
run_parts() {
    local part started code seconds word
    for part in "$@"; do
        mkdir "$state/$part.taken" 2>/dev/null || continue
        printf '\n===== %s =====\n' "$part"
        started=$SECONDS
        code=0
        nox -R -s "$part" -- ${soak[@]+"${soak[@]}"} 2>&1 | tee "$state/$part.log" || code=$?
        seconds=$((SECONDS - started))
        if [ "$code" -ne 0 ]; then
            word=FAILED
        elif grep -q "^SKIPPED $part: " "$state/$part.log"; then
            word=skipped
        else
            word=passed
        fi
        printf '%s %s\n' "$word" "$seconds" >"$state/$part.result"
        printf '%s: %s, %s s\n' "$part" "$word" "$seconds"
        [ "$word" != FAILED ] || printf '%s\n' "$part" >>"$state/failed"
        [ ! -e "$state/failed" ] || printf 'FAILED so far: %s\n' "$(paste -sd ' ' "$state/failed")"
    done
}

if [ ${#first[@]} -gt 0 ] && [ ${#beside[@]} -gt 0 ]; then
    printf 'Beside %s: %s, shown afterwards.\n' "${first[*]}" "${beside[*]}"
    set -m
    run_parts "${beside[@]}" "${backwards[@]}" >"$state/lane.log" 2>&1 </dev/null &
    lane=$!
    set +m
    run_parts "${first[@]}"
    # on to its end, live; a tail without that option shows all at the end
    tail -n +1 -f --pid="$lane" "$state/lane.log" 2>/dev/null || {
        wait "$lane" || true
        cat "$state/lane.log"
    }
    lane=
else
    run_parts ${first[@]+"${first[@]}"} ${beside[@]+"${beside[@]}"}
fi
run_parts ${last[@]+"${last[@]}"}

printf '\n===== summary =====\n'
printf 'set-up  %s s\n' "$setup_seconds"
failed=()
for part in "${chosen[@]}"; do
    # a lane that was killed leaves parts without a result
    [ -e "$state/$part.result" ] \
        || printf 'FAILED ?\n' | tee "$state/$part.log" >"$state/$part.result"
    read -r word seconds <"$state/$part.result"
    [ "$word" != FAILED ] || failed+=("$part")
    printf '%s  %s  %s s\n' "$part" "$word" "$seconds"
    closing_lines "$state/$part.log" | sed 's/^/    /'
done
if [ ${#failed[@]} -gt 0 ]; then
    printf 'FAILED: %s\n' "${failed[*]}"
    exit 1
fi
printf 'OK: %s, %s s\n' "${chosen[*]}" "$SECONDS"
