#!/bin/sh
# postgres.sh prepare CACHE | serve DIR PORT | drive DIR PORT
set -eu
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
case $1 in
  prepare)
    data=$2/data
    "$bin/initdb" -D "$data" -U bench -A trust --no-sync --wal-segsize=4 > /dev/null
    cat >> "$data/postgresql.conf" <<END
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = 64MB
synchronous_commit = off
min_wal_size = 8MB
max_wal_size = 256MB
autovacuum = off
max_connections = 20
jit = off
END
    "$bin/pg_ctl" -D "$data" -w -s -o "-p 29999" -l "$2/log" start
    "$bin/createdb" -h 127.0.0.1 -p 29999 -U bench bench
    "$bin/pgbench" -h 127.0.0.1 -p 29999 -U bench -i -s 2 -q bench 2> /dev/null
    "$bin/pg_ctl" -D "$data" -w -s stop
    ;;
  serve)
    exec "$bin/postgres" -D "$2/data" -p "$3"
    ;;
  drive)
    # exec keeps the process id, so the log's name is known before pgbench
    # opens it, and can be a pipe.
    cd "$2"
    mkfifo "log.$$"
    cat "log.$$" &
    exec "$bin/pgbench" -h 127.0.0.1 -p "$3" -U bench -N -n -c 4 -j 1 -T 3600 -l --log-prefix=log bench
    ;;
esac
