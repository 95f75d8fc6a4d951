#!/bin/sh
# unshare --net apart.sh N RATE COMMAND...: joins the new network namespace to
# that of the process outside by a link limited to RATE both ways, then becomes
# COMMAND. The namespace's end of link N is 10.213.(N/60).(4(N%60)+2).
set -eu
n=$1 rate=$2
shift 2
net=10.213.$((n / 60 % 250))
base=$((n % 60 * 4))
ip link set lo up
ip link add eth0 type veth peer name "cotenant$n" netns "$PPID"
ip addr add "$net.$((base + 2))/30" dev eth0
ip link set eth0 up
nsenter --net --target "$PPID" ip addr add "$net.$((base + 1))/30" dev "cotenant$n"
nsenter --net --target "$PPID" ip link set "cotenant$n" up
tc qdisc add dev eth0 root tbf rate "$rate" burst 64k latency 20ms
nsenter --net --target "$PPID" tc qdisc add dev "cotenant$n" root tbf rate "$rate" burst 64k latency 20ms
exec "$@"
