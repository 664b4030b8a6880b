#!/bin/sh
# The BMC's arm into a simulated machine: OpenIPMI's ipmi_sim runs it as its chassis_control program.
#   chassis_hook.sh HOSTDIR get power [boot]      prints power:1 or power:0
#   chassis_hook.sh HOSTDIR set power 0|1 | reset 1 | shutdown 1 | boot X | identify ...
#   chassis_hook.sh HOSTDIR check ...
# HOSTDIR is DIR/hosts/HOST; orders go as lines into DIR/machines.fifo. It decides nothing and knows no machine's state
# but the file `power`.
# ipmi_sim leaves its sockets open in what it starts: close them, or its port outlives it.
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
dir=$1 op=$2
shift 2
host=${dir##*/}
fifo=${dir%/hosts/*}/machines.fifo

has() { while read -r word; do [ "$word" = "$1" ] && return 0; done <"$dir/faults"; return 1; }
power() { read -r now <"$dir/power"; echo "$now"; }
# Opened for reading and writing, so that a missing reader cannot block the BMC for ever.
order() { [ -p "$fifo" ] && echo "$host power $1" 1<>"$fifo"; }
# Returns when the machine has carried it out, a second at most.
wait_power() {
    tries=0
    while [ "$(power)" != "$1" ] && [ $tries -lt 50 ]; do sleep 0.02; tries=$((tries + 1)); done
}

case $op in
get)
    for key in "$@"; do
        case $key in
        power) echo "power:$(power)" ;;
        boot) if [ -r "$dir/bootdev" ]; then echo "boot:$(cat "$dir/bootdev")"; else echo boot:none; fi ;;
        *) exit 1 ;;
        esac
    done ;;
set)
    if has bmc-slow; then sleep 3; fi
    while [ $# -gt 1 ]; do
        key=$1 value=$2
        shift 2
        if [ "$key" = boot ]; then echo "$value" >"$dir/bootdev"; continue; fi
        if [ "$key" = identify ] || has bmc-lies; then continue; fi
        case $key$value in
        power1) order on && wait_power 1 ;;
        power0) order off && wait_power 0 ;;
        reset*) order reset ;;
        shutdown*) order soft ;;
        *) exit 1 ;;
        esac || exit 1
    done ;;
check) ;;
*) exit 1 ;;
esac
exit 0
