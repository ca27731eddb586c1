#!/bin/bash
# Changes an image row by row and finds out what is true of it, by programs that are not ours: a boot, `systemctl`,
# etcd, the kernel. All of them see the very same tree, and so does `verify`: what a row changed is given out as a tar.
#
# usage: corpus.sh run PLAN
#   PLAN/base/NAME/image    a link to an image; PLAN/base/NAME/peer is one of another voter of the same mesh
#   PLAN/rows/N/base        NAME
#   PLAN/rows/N/name        for messages
#   PLAN/rows/N/change      shell text, run in the root of the row's tree, with the helpers below
#   PLAN/rows/N/probes      words: enabled, preset, registry, key, login, boot
#   PLAN/rows/N/await       of a boot: `start`, `nothing`, or `again` (nothing, and a start at the boot after that)
#   PLAN/rows/N/after       of a key or log-in: the path or user; of a boot: shell text that is run inside when it has ended without a start; may be empty
# It writes PLAN/rows/N/changes.tar, an overlay's upper directory, and PLAN/rows/N/truth.json.
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
    for old in "$parent"/fitout-corpus-*; do
        # Of a run that was killed: its processes died with it.
        if [ -d "$old" ] && ! [ -e "/proc/${old##*-}" ]; then remove_group "$old"; fi
    done
    group=$parent/fitout-corpus-$$
    mkdir "$group"
    # shellcheck disable=SC2064
    trap "remove_group '$group'" EXIT
    setpriv --pdeathsig KILL unshare --mount --net --pid --ipc --uts --fork --kill-child=KILL --mount-proc \
        bash "$0" inside "$group" "$@"
}

# --- helpers of changes ----------------------------------------------------------------------------------------------

E=etc/systemd/system
L=usr/lib/systemd/system
ETCD=/usr/lib/systemd/system/etcd.service
PKI=etc/etcd/pki
YAML=etc/etcd/etcd.yaml

put() { # PATH LINE...
    mkdir -p "$(dirname "$1")"
    printf '%s\n' "${@:2}" >"$1"
}

bytes() { # PATH FORMAT: bytes by printf(1)'s escapes
    mkdir -p "$(dirname "$1")"
    # shellcheck disable=SC2059
    printf "$2" >"$1"
}

script() { # PATH LINE...
    put "$1" '#!/bin/sh' "${@:2}"
    chmod 755 "$1"
}

link() { # PATH TARGET
    mkdir -p "$(dirname "$1")"
    ln -s "$2" "$1"
}

oneshot() { # NAME COMMAND: a oneshot that multi-user.target wants
    put "$E/$1" '[Service]' 'Type=oneshot' "ExecStart=$2"
    link "$E/multi-user.target.wants/$1" "/$E/$1"
}

yaml() { # SED-EXPRESSION: a change of etcd's configuration that must change it
    local before
    before=$(cat $YAML)
    sed -i -E "$1" $YAML
    [ "$before" != "$(cat $YAML)" ]
}

peer_file() { # PATH: a file of the other voter's image
    cat "$plan/base/$base/files/$1"
}

# Extensions as fitout's certificates have them.
PEER='basicConstraints=critical,CA:false
keyUsage=critical,digitalSignature,keyEncipherment
extendedKeyUsage=serverAuth,clientAuth
subjectAltName=DNS:lis1,DNS:lis1.harbour.mesh,IP:10.77.0.11'
SERVER='basicConstraints=critical,CA:false
keyUsage=critical,digitalSignature,keyEncipherment
extendedKeyUsage=serverAuth
subjectAltName=DNS:lis1,DNS:lis1.harbour.mesh,DNS:localhost,IP:10.77.0.11,IP:127.0.0.1'

# A certificate for etcd's key of the tree, by openssl. AUTHORITY is `peer`, `client`, or a path without its suffix.
issue() { # AUTHORITY USE SUBJECT EXTENSIONS [BEGIN END]
    local authority=$1 desk
    [[ $authority == */* ]] || authority=$plan/base/$base/authority/$authority
    desk=$(mktemp -d)
    : >"$desk/index"
    cat >"$desk/config" <<-END
	[ca]
	default_ca=a
	[a]
	database=$desk/index
	new_certs_dir=$desk
	rand_serial=yes
	policy=p
	unique_subject=no
	[p]
	commonName=supplied
	[req]
	distinguished_name=d
	[d]
	[x]
	$4
	END
    openssl req -new -key "$PKI/$2.key" -subj "$3" -config "$desk/config" -out "$desk/request"
    openssl ca -batch -notext -config "$desk/config" -extensions x -md "${DIGEST:-sha256}" -in "$desk/request" \
        -cert "$authority.crt" -keyfile "$authority.key" -startdate "${5:-20260101000000Z}" \
        -enddate "${6:-20310101000000Z}" -out "$desk/certificate" 2>"$desk/log" || { cat "$desk/log" >&2; return 1; }
    cat "$desk/certificate" >"$PKI/$2.crt"
    rm -r "$desk"
}

# An authority of nobody's, with the name and key identifiers of its own: x.crt and x.key.
foreign_authority() { # SUBJECT
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout x.key -out x.crt -days 3650 -subj "$1" \
        -addext basicConstraints=critical,CA:true -addext keyUsage=critical,keyCertSign 2>/dev/null
}

# --- inside: one row at a time, two at once --------------------------------------------------------------------------

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

# True when a process called etcd is in the control group, whoever started it.
etcd_runs() { # GROUP
    local pid
    for pid in $(find "$1" -name cgroup.procs -exec cat {} + 2>/dev/null); do
        if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = etcd ]; then return 0; fi
    done
    return 1
}

# Looks by condition until etcd was started, or nothing is going to start it. Sets state, started, stopped.
watch() { # DIRECTORY GROUP NSPAWN AWAIT AFTER
    local deadline=$((SECONDS + 180)) grace='' pid='' first jobs
    state=unknown started=false stopped=false active= enabled=
    while ! pid=$(leader "$3"); do
        if ! kill -0 "$3" 2>/dev/null; then
            state=refused
            return
        fi
        if [ $SECONDS -ge $deadline ]; then
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
        if [ "$first" != 0 ] || etcd_runs "$2"; then
            started=true
            break
        fi
        # Nothing was started, nothing waits to be: the boot has ended.
        if [[ $state == @(running|degraded|maintenance) && -z $jobs ]]; then
            if [ -z "$grace" ]; then
                stopped=true
                # Time for what comes after the boot: a timer, a path unit, a command.
                grace=$((SECONDS + 40))
                [ -z "$5" ] || enter "$pid" sh -c "$5" >&2 || true
            fi
            if [ "$4" = nothing ] || [ $SECONDS -ge $grace ]; then break; fi
        fi
        if ! kill -0 "$3" 2>/dev/null || [ $SECONDS -ge $deadline ]; then
            echo "the boot did not end in time: it is $state" >&2
            break
        fi
        sleep 0.2
    done
    active=$(enter "$pid" systemctl is-active etcd.service || true)
    enabled=$(enter "$pid" systemctl is-enabled etcd.service 2>/dev/null || true)
    if { [ "$4" = start ] && ! $started; } || { [ "$4" = nothing ] && { $started || ! $stopped; }; }; then
        enter "$pid" sh -c 'systemctl list-jobs; journalctl --no-pager --boot --lines=60' >&2 || true
    fi
    kill -KILL "$pid"
}

boot() { # DIRECTORY GROUP AWAIT AFTER
    local nspawn init
    mkdir "$2"
    ip netns add "$name"
    ip -n "$name" link set lo up
    ip -n "$name" address add "$address/32" dev lo
    # What `--boot` runs is systemd, whatever /sbin/init is; a kernel and LXC run /sbin/init.
    case $(chroot "$1/root" readlink -f /sbin/init) in
    */systemd) init=--boot ;;
    *) init=/sbin/init ;;
    esac
    # The shell enters the control group and becomes systemd-nspawn: every process of the machine is then in it.
    # shellcheck disable=SC2016
    sh -c 'echo 0 >"$1"/cgroup.procs && shift && exec "$@"' sh "$2" \
        systemd-nspawn --quiet --keep-unit --register=no --settings=no --link-journal=no --resolv-conf=off \
        --timezone=off --console=pipe --machine="$name" --network-namespace-path="/run/netns/$name" \
        --directory "$1/root" $init </dev/null >"$1/console" 2>&1 &
    nspawn=$!
    watch "$1" "$2" "$nspawn" "$3" "$4"
    wait "$nspawn" || true
    remove_group "$2"
    ip netns delete "$name"
}

links() { # ROOT: how many enablement links there are
    find "$1"/etc/systemd/system -mindepth 2 -type l 2>/dev/null | wc -l
}

probe_boot() { # DIRECTORY GROUP AWAIT AFTER
    local before state started stopped active enabled await=$3
    before=$(links "$1/root")
    if [ "$3" = again ]; then await=nothing; fi
    boot "$1" "$2" "$await" "$4"
    if [ "$3" = again ] && $stopped && ! $started; then boot "$1" "$2" start ''; fi
    say ",\"state\":\"$state\",\"started\":$started,\"stopped\":$stopped,\"active\":\"$active\",\"enabled\":\"$enabled\""
    say ",\"made\":$(($(links "$1/root") - before))"
}

probe_enabled() { # DIRECTORY
    # By this host's systemctl from outside, and by the image's own: old ones know no `.upholds/`.
    say ",\"outside\":\"$(systemctl --root="$1/root" is-enabled etcd.service 2>/dev/null || true)\""
    say ",\"own\":\"$(SYSTEMD_OFFLINE=1 chroot "$1/root" systemctl is-enabled etcd.service 2>/dev/null || true)\""
}

# What two programs read as a private key, and whose it is.
probe_key() { # DIRECTORY PATH
    local file=$1/root/$2 found=none public own
    cp "$file" "$1/key"
    chmod 600 "$1/key"
    if public=$(openssl pkey -in "$1/key" -passin pass: -pubout 2>/dev/null ||
        openssl pkey -in "$1/key" -inform DER -passin pass: -pubout 2>/dev/null); then
        found=foreign
        for own in "$1"/root/etc/etcd/pki/*.key; do
            if [ "$public" = "$(openssl pkey -in "$own" -pubout 2>/dev/null)" ]; then found=own; fi
        done
        for own in "$plan/base/$base/files"/etc/etcd/pki/*.key; do
            if [ "$public" = "$(openssl pkey -in "$own" -pubout)" ]; then found=other; fi
        done
    elif ssh-keygen -y -P '' -f "$1/key" >/dev/null 2>&1; then
        found=foreign
    elif openssl pkcs12 -in "$1/key" -passin pass:x -nodes 2>/dev/null | grep -q 'PRIVATE KEY'; then
        found=container
    elif openssl pkey -in "$1/key" -passin pass:x -noout 2>/dev/null; then
        found=encrypted
    fi
    say ",\"key\":\"$found\""
}

# Whether nobody becomes a user without a password.
probe_login() { # DIRECTORY USER
    local id enters=false
    if id=$(timeout 10 chroot --userspec=65534:65534 --groups= "$1/root" su "$2" -c 'id -un; true' </dev/null 2>/dev/null) &&
        [ -n "$id" ]; then enters=true; fi
    say ",\"enters\":$enters"
}

# What is enabled after a `preset`, in a tree of its own.
probe_preset() { # DIRECTORY
    mkdir "$1/preset-upper" "$1/preset-work" "$1/preset"
    mount -t overlay -o "lowerdir=$1/root,upperdir=$1/preset-upper,workdir=$1/preset-work" overlay "$1/preset"
    SYSTEMD_OFFLINE=1 chroot "$1/preset" systemctl preset etcd.service >/dev/null 2>&1 || true
    say ",\"preset\":\"$(SYSTEMD_OFFLINE=1 chroot "$1/preset" systemctl is-enabled etcd.service 2>/dev/null || true)\""
    umount "$1/preset"
}

# etcd of the tree and etcd of another voter, on a wire of their own, each as its unit's user.
probe_registry() { # DIRECTORY
    local directory=$1 files path unreadable= open= first deadline listens=false quorum=false client=false refused=false own other
    files=$(. "$work/$base/root/etc/mesh/preflight.conf" && echo "$readable")
    for path in $files; do
        chroot --userspec=etcd: "$1/root" cat "$path" >/dev/null 2>&1 || unreadable+=" ${path##*/}"
        case $path in
        *.key) if chroot --userspec=65534:65534 --groups= "$1/root" cat "$path" >/dev/null 2>&1; then open+=" ${path##*/}"; fi ;;
        esac
    done
    mkdir "$1/peer" "$1/peer-upper" "$1/peer-work"
    mount -t overlay -o "lowerdir=$work/$base/files:$work/$base/root,upperdir=$1/peer-upper,workdir=$1/peer-work" overlay "$1/peer"
    ip netns add "$name"
    ip netns add "$name-peer"
    ip -n "$name" link add eth0 type veth peer name eth0 netns "$name-peer"
    for path in "$name $address" "$name-peer $peer_address"; do
        ip -n "${path% *}" link set lo up
        ip -n "${path% *}" address add "${path#* }/24" dev eth0
        ip -n "${path% *}" link set eth0 up
    done
    ip netns exec "$name" chroot --userspec=etcd: "$1/root" /usr/bin/etcd --config-file /etc/etcd/etcd.yaml >"$1/own.log" 2>&1 &
    own=$!
    ip netns exec "$name-peer" chroot --userspec=etcd: "$1/peer" /usr/bin/etcd --config-file /etc/etcd/etcd.yaml >"$1/other.log" 2>&1 &
    other=$!
    first=$SECONDS
    deadline=$((SECONDS + 20))
    while kill -0 $own 2>/dev/null && [ $SECONDS -lt $deadline ]; do
        if ! $listens && ip netns exec "$name" ss -Hltn 'sport = :2380' | grep -q .; then listens=true; fi
        if ip netns exec "$name-peer" curl -s --max-time 1 http://127.0.0.1:2381/health | grep -q '"health":"true"'; then
            quorum=true
            break
        fi
        # Refused by one side or the other, again and again: it will not come to a quorum.
        if [ $((SECONDS - first)) -ge 6 ] && [ "$(grep -chE 'x509|tls: |certificate|cluster ID mismatch|cluster-id mismatch|http: ' "$1/own.log" "$1/other.log" | sort -n | tail -1)" -ge 12 ]; then break; fi
        sleep 0.1
    done
    kill -0 $own 2>/dev/null || listens=false
    if grep -qE 'x509: |tls: bad certificate|remote error: tls' "$1/own.log" "$1/other.log"; then refused=true; fi
    if $quorum && ip netns exec "$name-peer" timeout 5 etcdctl --endpoints="https://$address:2379" --command-timeout=3s \
        --cacert="$1/peer/etc/mesh/pki/client-ca.crt" --cert="$1/peer/etc/mesh/pki/client.crt" \
        --key="$1/peer/etc/mesh/pki/client.key" endpoint status >/dev/null 2>&1; then client=true; fi
    kill -KILL $own $other 2>/dev/null || true
    wait $own $other 2>/dev/null || true
    tail -n 5 "$1/own.log" | cut -c 1-400 >"$row/log"
    ip netns delete "$name"
    ip netns delete "$name-peer"
    umount "$1/peer"
    say ",\"unreadable\":\"${unreadable# }\",\"open\":\"${open# }\",\"listens\":$listens,\"quorum\":$quorum,\"client\":$client,\"refused\":$refused"
}

say() { printf %s "$1" >>"$row/truth.json"; }

run_row() { # NUMBER
    local row=$plan/rows/$1 directory=$work/$1 name=row$1 begin=$SECONDS base address peer_address probes
    base=$(cat "$row/base")
    probes=$(cat "$row/probes")
    address=$(. "$work/$base/root/etc/mesh/preflight.conf" && echo "$address")
    peer_address=$(. "$work/$base/files/etc/mesh/preflight.conf" && echo "$address")
    mkdir -p "$directory"/{upper,work,root}
    mount -t overlay -o "lowerdir=$work/$base/root,upperdir=$directory/upper,workdir=$directory/work" overlay "$directory/root"
    (
        umask 022
        cd "$directory/root"
        eval "$(cat "$row/change")"
    )
    tar --create --directory "$directory/upper" --format=pax --pax-option=delete=atime,delete=ctime --numeric-owner \
        --xattrs --xattrs-include='*' --sort=name --file "$row/changes.tar" .
    printf '{"row":"ran"' >"$row/truth.json"
    for probe in $probes; do
        case $probe in
        enabled) probe_enabled "$directory" ;;
        preset) probe_preset "$directory" ;;
        registry) probe_registry "$directory" ;;
        key) probe_key "$directory" "$(cat "$row/after")" ;;
        login) probe_login "$directory" "$(cat "$row/after")" ;;
        boot) probe_boot "$directory" "$group/$1" "$(cat "$row/await")" "$(cat "$row/after")" ;;
        esac
    done
    say ",\"seconds\":$((SECONDS - begin))}"
    umount "$directory/root"
    rm -rf "$directory"
}

worker() { # FIRST
    local at
    for ((at = $1; at < rows; at += workers)); do
        # In the background, so that the first error ends the row, and the row alone.
        run_row "$at" &
        wait $! || {
            echo "this was row $at: $(cat "$plan/rows/$at/name")" >&2
            echo '{"row":"failed"}' >"$plan/rows/$at/truth.json"
        }
    done
}

unpack() { # TAR.GZ DIRECTORY [TAR-OPTION...]
    mkdir -p "$2"
    gzip -dc "$1" | tar --extract --preserve-permissions --same-owner --numeric-owner --xattrs \
        --xattrs-include='*' --directory "$2" --file - "${@:3}"
}

inside() { # GROUP PLAN
    group=$1 plan=$2 workers=2 work=/run/corpus
    local at pids=() pid failed=0
    rows=$(find "$plan/rows" -mindepth 1 -maxdepth 1 | wc -l)
    # systemd-nspawn refuses a /run on a disk. The machines' roots lie there too and need no cleaning up.
    mount -t tmpfs -o mode=0755,size=75% tmpfs /run
    for at in "$plan"/base/*; do
        unpack "$at/image" "$work/${at##*/}/root" &
        pids+=($!)
        unpack "$at/peer" "$work/${at##*/}/files" ./etc/etcd ./etc/mesh ./etc/hosts ./etc/hostname ./var/lib/etcd &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
    for at in "$plan"/base/*; do ln -s "$work/${at##*/}/files" "$at/files"; done
    pids=()
    for ((at = 0; at < workers; at++)); do
        worker "$at" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    [ $failed = 0 ]
}

"$@"
