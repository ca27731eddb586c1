#!/bin/bash
# Changes an image case by case, asks the program what it says of it, boots it, and looks whether etcd was started.
# Both see the very same tree. Prints one JSON object a case.
#
# usage: boot_truth.sh run FITOUT IMAGE [NAME MUTATION AWAIT AFTER]...
#   MUTATION  shell text, run in the root of the case's tree
#   AWAIT     `start` or `nothing`: how long to look
#   AFTER     shell text that is run inside when the boot has ended without a start; may be empty
#
# Like the gate it leaves nothing behind: mounts and processes go with the namespaces, the control group is removed.
set -euo pipefail

# --- outside: the control group, and the namespaces -----------------------------------------------------------------

run() {
    exec unshare --mount bash "$0" outside "$@"
}

# A dead process leaves its group a moment after it was waited for.
remove_group() {
    local tries
    for tries in {1..100}; do
        find "$1" -depth -type d -exec rmdir {} + 2>/dev/null || true
        [ -d "$1" ] || return 0
        sleep 0.1
    done
    echo "the control group $1 is left" >&2
    return 1
}

outside() {
    # Hybrid and legacy hosts get the same view so as modern ones, where a second mount would be refused.
    [ -e /sys/fs/cgroup/cgroup.controllers ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup
    local parent group old
    parent=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
    parent=${parent%/}
    for old in "$parent"/fitout-boot-truth-*; do
        # Of a run that was killed: its processes died with it.
        if [ -d "$old" ] && ! [ -e "/proc/${old##*-}" ]; then remove_group "$old"; fi
    done
    group=$parent/fitout-boot-truth-$$
    mkdir "$group"
    # shellcheck disable=SC2064
    trap "remove_group '$group'" EXIT
    setpriv --pdeathsig KILL unshare --mount --net --pid --ipc --uts --fork --kill-child=KILL --mount-proc \
        bash "$0" inside "$group" "$@"
}

# --- helpers of mutations --------------------------------------------------------------------------------------------

E=etc/systemd/system
L=usr/lib/systemd/system
ETCD=/usr/lib/systemd/system/etcd.service

put() { # PATH LINE...
    mkdir -p "$(dirname "$1")"
    printf '%s\n' "${@:2}" >"$1"
}

link() { # PATH TARGET
    mkdir -p "$(dirname "$1")"
    ln -s "$2" "$1"
}

oneshot() { # NAME COMMAND: a oneshot that multi-user.target wants
    put "$E/$1" '[Service]' 'Type=oneshot' "ExecStart=$2"
    link "$E/multi-user.target.wants/$1" "/$E/$1"
}

# --- inside: one machine a case --------------------------------------------------------------------------------------

# The machine's init below this systemd-nspawn, once it is systemd: before, it may still see our file system.
leader() {
    local pid
    for pid in $(cat "/proc/$1/task/$1/children"); do
        if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = systemd ] && grep -qs '^NSpid:.*[[:space:]]1$' "/proc/$pid/status"
        then
            echo "$pid"
            return
        fi
    done
    return 1
}

enter() { # LEADER COMMAND...
    timeout 30 nsenter --target "$1" --all -- \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 SYSTEMD_PAGER= SYSTEMD_COLORS=0 "${@:2}"
}

# Looks by condition until etcd was started, or nothing is going to start it. Sets state, started, stopped.
watch() { # DIRECTORY NSPAWN AWAIT AFTER
    local deadline=$((SECONDS + 180)) grace='' pid='' first jobs
    state=unknown started=false stopped=false
    while ! pid=$(leader "$2"); do
        if ! kill -0 "$2" || [ $SECONDS -ge $deadline ]; then
            cat "$1/console" >&2
            return 1
        fi
        sleep 0.1
    done
    while :; do
        # A start that failed has left `inactive` too: that is when this time is taken. All answers or none: while PID 1
        # cannot be asked yet, some of these commands would say nothing, and others 0.
        # shellcheck disable=SC2016
        read -r state first jobs < <(enter "$pid" sh -c 'state=$(systemctl is-system-running)
            first=$(systemctl show -P InactiveExitTimestampMonotonic etcd.service) || exit
            jobs=$(systemctl list-jobs --no-legend) || exit
            echo "${state:-unknown} ${first:-0} ${jobs:+some}"' 2>/dev/null) || state=unknown first=0 jobs=unknown
        if [ "$first" != 0 ]; then
            started=true
            break
        fi
        # Nothing was started, nothing waits to be: the boot has ended.
        if [[ $state == @(running|degraded|maintenance) && -z $jobs ]]; then
            if [ -z "$grace" ]; then
                stopped=true
                # Time for what comes after the boot: a timer, a path unit, a command.
                grace=$((SECONDS + 40))
                [ -z "$4" ] || enter "$pid" sh -c "$4" >&2
            fi
            if [ "$3" = nothing ] || [ $SECONDS -ge $grace ]; then break; fi
        fi
        if ! kill -0 "$2" 2>/dev/null || [ $SECONDS -ge $deadline ]; then
            echo "the boot did not end in time: it is $state" >&2
            break
        fi
        sleep 0.2
    done
    active=$(enter "$pid" systemctl is-active etcd.service || true)
    enabled=$(enter "$pid" systemctl is-enabled etcd.service 2>/dev/null || true)
    if { [ "$3" = start ] && ! $started; } || { [ "$3" = nothing ] && { $started || ! $stopped; }; }; then
        enter "$pid" sh -c 'systemctl list-jobs; journalctl --no-pager --boot --lines=60' >&2 || true
    fi
    kill -KILL "$pid"
}

run_case() { # NUMBER MUTATION AWAIT AFTER
    local directory=$work/$1 group=$group/$1 begin=$SECONDS nspawn outside own state started stopped active enabled verdict
    mkdir -p "$directory"/{upper,work,root} "$group"
    mount -t overlay -o "lowerdir=$work/base,upperdir=$directory/upper,workdir=$directory/work" overlay "$directory/root"
    (
        umask 022
        cd "$directory/root"
        eval "$2"
    )
    # By this host's systemctl from outside, and by the image's own: old ones know no `.upholds/`.
    outside=$(systemctl --root="$directory/root" is-enabled etcd.service 2>/dev/null || true)
    own=$(SYSTEMD_OFFLINE=1 chroot "$directory/root" systemctl is-enabled etcd.service 2>/dev/null || true)
    tar --create --directory "$directory/root" --format=pax --pax-option=delete=atime,delete=ctime --numeric-owner \
        --xattrs --xattrs-include='*' --sort=name --file - . |
        "$fitout" verify --message-format json /dev/stdin >"$directory/verdict" ||
        [ "${PIPESTATUS[*]}" = "0 1" ]
    verdict=$(paste -sd, "$directory/verdict")

    ip netns add "case$1"
    ip -n "case$1" link set lo up
    ip -n "case$1" address add "$address/32" dev lo
    # The shell enters the control group and becomes systemd-nspawn: every process of the machine is then in it.
    # shellcheck disable=SC2016
    sh -c 'echo 0 >"$1"/cgroup.procs && shift && exec "$@"' sh "$group" \
        systemd-nspawn --quiet --boot --keep-unit --register=no --settings=no --link-journal=no --resolv-conf=off \
        --timezone=off --console=pipe --machine="case$1" --network-namespace-path="/run/netns/case$1" \
        --directory "$directory/root" </dev/null >"$directory/console" 2>&1 &
    nspawn=$!
    watch "$directory" "$nspawn" "$3" "$4"
    wait "$nspawn" || true
    remove_group "$group"
    umount "$directory/root"
    ip netns delete "case$1"
    rm -rf "$directory"

    printf '{"outside":"%s","own":"%s","state":"%s","started":%s,"stopped":%s,"active":"%s","enabled":"%s","seconds":%d,"verify":[%s]}\n' \
        "$outside" "$own" "$state" "$started" "$stopped" "$active" "$enabled" $((SECONDS - begin)) "$verdict" >"$work/$1.json"
}

worker() { # FIRST
    local at name
    for ((at = $1; at < ${#cases[@]} / 4; at += workers)); do
        name=${cases[at * 4]}
        # shellcheck disable=SC2064
        trap "echo 'this was case: $name' >&2" EXIT
        run_case "$at" "${cases[@]:at * 4 + 1:3}"
    done
    trap - EXIT
}

inside() { # GROUP FITOUT IMAGE CASE...
    group=$1 fitout=$2 workers=2 work=/run/boot-truth
    local image=$3 at pids=() pid failed=0
    cases=("${@:4}")
    # systemd-nspawn refuses a /run on a disk. The machines' roots lie there too and need no cleaning up.
    mount -t tmpfs -o mode=0755,size=75% tmpfs /run
    mkdir -p "$work/base"
    gzip -dc "$image" | tar --extract --preserve-permissions --same-owner --numeric-owner --xattrs \
        --xattrs-include='*' --directory "$work/base" --file -
    # The preflight wants the node's address; without it etcd would not even be tried.
    address=$(. "$work/base/etc/etcd/preflight.conf" && echo "$address")
    for ((at = 0; at < workers; at++)); do
        worker "$at" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    [ $failed = 0 ]
    for ((at = 0; at < ${#cases[@]} / 4; at++)); do cat "$work/$at.json"; done
}

"$@"
