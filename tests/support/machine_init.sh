#!/bin/sh
# Process 1 of a test machine, in namespaces of its own (machines.py).
# Arguments: the layers for overlayfs, the machine's folder, its name, boot or wait, and its cgroup folders.
set -eu
layers=$1 folder=$2 name=$3 mode=$4
shift 4
root=$folder/root
read -r pid rest < /proc/self/stat  # as the host counts
echo "$pid"
read -r address host  # machines.py has connected the network

mount -t overlay overlay -o "lowerdir=$layers,upperdir=$folder/upper,workdir=$folder/work" "$root"
hostname "$name"
echo "$name" > "$root/etc/hostname"
printf '127.0.0.1 localhost\n%s %s\n%s host\n' "$address" "$name" "$host" > "$root/etc/hosts"
ip link set lo up
ip link set eth0 up
ip address add "$address/24" dev eth0

# The kernel's settings and devices belong to the host: read-only, except those of this network.
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount --bind "$root/proc/sys/net" "$root/proc/sys/net"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$root/sys"
mount -t tmpfs -o mode=755,size=1m tmpfs "$root/dev"
for device in null zero full random urandom tty; do cp -a "/dev/$device" "$root/dev/"; done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777,size=256m tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"
ln -s fd/1 "$root/dev/stdout"
ln -s fd/2 "$root/dev/stderr"
mount -t tmpfs -o mode=755,size=256m tmpfs "$root/run"
mkdir "$root/run/lock"

# With one hierarchy (version 2), its folder is the machine's /sys/fs/cgroup; else each has a folder below it.
[ $# = 1 ] || mount -t tmpfs -o mode=755,size=1m tmpfs "$root/sys/fs/cgroup"
for group; do
    place=$root/sys/fs/cgroup
    if [ $# != 1 ]; then
        hierarchy=${group#/sys/fs/cgroup/}
        place=$place/${hierarchy%%/*}
        mkdir "$place"
    fi
    mount --bind "$group" "$place"
done

# Overlays of container engines do not stack on this machine's overlay.
for engine in containerd containers docker; do
    mkdir -p "$folder/disk/$engine" "$root/var/lib/$engine"
    mount --bind "$folder/disk/$engine" "$root/var/lib/$engine"
done

cd "$root"
mkdir -p .outside
pivot_root . .outside
umount -l /.outside
rmdir /.outside
set -- env -i container=stoker PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
echo ready
exec >&2
[ "$mode" = wait ] || exec "$@" /sbin/init < /dev/null
exec "$@" env --ignore-signal=CHLD sleep infinity < /dev/null  # the kernel removes processes without a parent
