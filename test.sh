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
# Parts run in three lanes, of which two show their output afterwards; the long tests run one by one.
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

# Three lanes. Two need about a core each, and wait a lot: what has nodes and clusters of modules, and what has Spark
# and local clusters. One more of their kind would slow all of them down, until deadlines are missed. The third has what
# only computes and a user's first hour, begins with what tells quickly, and takes the time that the others leave. Each
# that ends takes from the others what nobody has begun. What is measured has the machine for itself.
quick=() short=() nodes=() clusters=() either=() last=()
for part in "${chosen[@]}"; do
    case $part in
        static | unit | sanity) quick+=("$part") ;;
        molecule | state | topics) nodes+=("$part") ;;
        spark | local) clusters+=("$part") ;;
        rolls) either+=("$part") ;;
        smoke | bench) last+=("$part") ;;
        *) short+=("$part") ;;
    esac
done
if [ ${#soak[@]} -gt 0 ]; then
    quick=() short=() nodes=() clusters=() either=() last=("${chosen[@]}")
fi
# Nothing of the other two lanes: the tests of units, which mostly wait, go beside what only computes.
if [ ${#nodes[@]} -eq 0 ] && [ ${#clusters[@]} -eq 0 ] && [ ${#quick[@]} -gt 1 ]; then
    others=()
    for part in "${quick[@]}"; do
        [ "$part" = unit ] && nodes=(unit) || others+=("$part")
    done
    quick=(${others[@]+"${others[@]}"})
fi
first=(${quick[@]+"${quick[@]}"} ${short[@]+"${short[@]}"})
backwards=()
for part in ${first[@]+"${first[@]}"}; do
    backwards=("$part" ${backwards[@]+"${backwards[@]}"})
done

state=$(mktemp -d "${TMPDIR:-/tmp}/kafkaops-test.XXXXXX")
lanes=() shown=()
# A lane is a process group of its own: interrupted like this one, it ends its clusters, too.
end_lanes() {
    local lane
    for lane in ${lanes[@]+"${lanes[@]}"}; do kill -INT -- "-$lane" 2>/dev/null || true; done
    wait || true
}
trap 'end_lanes; rm -rf "$state"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The closing lines of pytest, ansible-lint, ruff, black and ansible-test, and why a part was skipped.
closing_lines() {
    grep -E '^=+ .*(passed|failed|error|skipped|deselected|no tests ran).* in [0-9.]+s|^(SKIPPED|FAILED|ERROR) |^Passed: |^Failed: |^All checks passed|^Found [0-9]+ error|files? would be |^(ERROR|FATAL): The [0-9]+ sanity' \
        <"$1" | sed -E 's/\x1b\[[0-9;]*m//g' || true
}

# Begin a lane beside this one, with these parts; its output goes into $state/NAME.lane.
begin_lane() {
    local name=$1
    shift
    set -m
    run_parts "$@" >"$state/$name.lane" 2>&1 </dev/null &
    lanes+=("$!") shown+=("$name")
    set +m
}

# Show a lane's output to its end, live; a tail without that option shows all at the end.
show_lane() {
    tail -n +1 -f --pid="$1" "$state/$2.lane" 2>/dev/null || {
        wait "$1" || true
        cat "$state/$2.lane"
    }
}

gently=()
# Run those parts that no lane has taken; of each one leaves the output and a line "WORD SECONDS" in $state.
run_parts() {
    local part started code seconds word
    for part in "$@"; do
        mkdir "$state/$part.taken" 2>/dev/null || continue
        printf '\n===== %s =====\n' "$part"
        started=$SECONDS
        code=0
        ${gently[@]+"${gently[@]}"} nox -R -s "$part" -- ${soak[@]+"${soak[@]}"} 2>&1 | tee "$state/$part.log" || code=$?
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

several=0
for word in "${first[*]-}" "${nodes[*]-}" "${clusters[*]-}" "${either[*]-}"; do
    [ -z "$word" ] || several=$((several + 1))
done
# What a lane takes when its own parts have begun.
left=(${either[@]+"${either[@]}"} ${backwards[@]+"${backwards[@]}"})
if [ "$several" -gt 1 ]; then
    printf 'Beside them, shown afterwards: %s\n' "${nodes[*]-} ${clusters[*]-}"
    [ ${#nodes[@]} -eq 0 ] || begin_lane nodes "${nodes[@]}" ${left[@]+"${left[@]}"}
    [ ${#clusters[@]} -eq 0 ] || begin_lane clusters "${clusters[@]}" ${left[@]+"${left[@]}"}
    gently=(nice -n 10)
    run_parts ${first[@]+"${first[@]}"}
    gently=()
    run_parts ${either[@]+"${either[@]}"}
    for number in "${!lanes[@]}"; do
        show_lane "${lanes[number]}" "${shown[number]}"
    done
    lanes=()
else
    run_parts ${first[@]+"${first[@]}"} ${nodes[@]+"${nodes[@]}"} ${clusters[@]+"${clusters[@]}"} ${either[@]+"${either[@]}"}
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
