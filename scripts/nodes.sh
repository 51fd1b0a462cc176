#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
#
# Provides what the Molecule scenarios need: a Docker engine and the images of the nodes.
#
#     scripts/nodes.sh up      install and start the engine where root on Debian may, build what is missing
#     scripts/nodes.sh down    stop the engine if `up` has started it
#
# KAFKAOPS_NODE_RELEASE (default bookworm) is the release of Debian: trixie is the other one that was tried.
# KAFKAOPS_NODE_IMAGE (default kafkaops-node:RELEASE) is a Debian with systemd, sshd, sudo and Python, but
# no Java; KAFKAOPS_NODE_IMAGE_JAVA the same with Java. Set them to use images of your own.
# Exit code 77: cannot be had on this machine, the reason is the last line.
set -euo pipefail

release=${KAFKAOPS_NODE_RELEASE:-bookworm}
image=${KAFKAOPS_NODE_IMAGE:-kafkaops-node:$release}
image_java=${KAFKAOPS_NODE_IMAGE_JAVA:-$image-java}
checkout=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
state=$checkout/.ansible/nodes
pid_file=$state/dockerd.pid
# shellcheck source=scripts/packages.sh
. "$checkout/scripts/packages.sh"

provide_engine() {
    docker info >/dev/null 2>&1 && return
    command -v dockerd >/dev/null || apt_install docker.io iptables iproute2
    [ "$(id -u)" = 0 ] || cannot "the Docker engine does not answer, and starting it needs root"
    say "Starting the Docker engine."
    setsid dockerd --pidfile "$pid_file" >"$state/dockerd.log" 2>&1 </dev/null &
    local deadline=$((SECONDS + 60))
    until docker info >/dev/null 2>&1; do
        [ $SECONDS -lt $deadline ] \
            || cannot "the Docker engine does not start: $(tail -n 1 "$state/dockerd.log")"
        sleep 0.2
    done
}

# The machine's own package source: it is the one that can be reached from here.
debian_source() {
    apt-get indextargets --format "\$(CREATED_BY) \$(SITE) \$(CODENAME) \$(REPO_URI)" 2>/dev/null \
        | awk '$1 == "Packages" && $3 == "bookworm" {print $4; exit}'
}

build_base() {
    local root source
    command -v debootstrap >/dev/null || apt_install debootstrap
    source=$(debian_source)
    say "Building $image: about 90 s, once."
    root=$(mktemp -d /var/tmp/kafkaops-node.XXXXXX)
    # shellcheck disable=SC2064
    trap "rm -rf '$root'" EXIT
    # an empty source is left out: then debootstrap's own default holds
    debootstrap --variant=minbase \
        --include=systemd,systemd-sysv,dbus,python3,python3-apt,iproute2,iptables,ca-certificates,sudo,procps,openssh-server \
        "$release" "$root/image" ${source:+"$source"} >"$state/debootstrap.log" 2>&1 \
        || cannot "debootstrap failed: $(tail -n 1 "$state/debootstrap.log")"
    chroot "$root/image" useradd --create-home --shell /bin/bash ops
    printf 'ops ALL=(ALL) NOPASSWD: ALL\n' >"$root/image/etc/sudoers.d/ops"
    # keys of the host are made at each node's own first boot, not once for all
    rm -f "$root"/image/etc/ssh/ssh_host_*
    cat >"$root/image/etc/systemd/system/ssh-host-keys.service" <<'UNIT'
[Unit]
Before=ssh.service
[Service]
Type=oneshot
ExecStart=/usr/bin/ssh-keygen -A
[Install]
WantedBy=multi-user.target
UNIT
    chroot "$root/image" systemctl --quiet enable ssh ssh-host-keys
    tar -C "$root/image" -c . \
        | docker import -c 'CMD ["/sbin/init"]' -c 'ENV container=docker' - "$image" >/dev/null
    rm -rf "$root"
}

build_java() {
    say "Building $image_java: about 40 s, once."
    local container=kafkaops-node-build java=default-jre-headless
    [ "$release" != bookworm ] || java=openjdk-17-jre-headless
    docker rm --force "$container" >/dev/null 2>&1 || true
    docker run --name "$container" "$image" sh -ec \
        "apt-get update -q && apt-get install -qy --no-install-recommends $java && apt-get clean" \
        >"$state/java.log" 2>&1 || cannot "Java could not be installed in $image: $(tail -n 1 "$state/java.log")"
    docker commit --change 'CMD ["/sbin/init"]' "$container" "$image_java" >/dev/null
    docker rm "$container" >/dev/null
}

up() {
    mkdir -p "$state"
    [ "$(uname -s)" = Linux ] || cannot "the nodes are containers that run systemd: Linux only"
    command -v ssh >/dev/null || apt_install openssh-client
    provide_engine
    docker image inspect "$image" >/dev/null 2>&1 || build_base
    docker image inspect "$image_java" >/dev/null 2>&1 || build_java
}

down() {
    [ -f "$pid_file" ] || return 0
    say "Stopping the Docker engine that was started for the tests."
    local pid
    pid=$(cat "$pid_file")
    kill "$pid" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null; do sleep 0.2; done
    rm -f "$pid_file"
}

case ${1:-} in
    up) up ;;
    down) down ;;
    *)
        sed -n 's/^# \{0,1\}//; 5,13p' "${BASH_SOURCE[0]}"
        exit 2
        ;;
esac
