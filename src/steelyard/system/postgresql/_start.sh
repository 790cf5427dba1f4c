# Starts a server in the foreground: sh start.sh PROGRAMS DATA CONFIGURATION PRIMARY
# PRIMARY is the connection string of the server that this one follows, empty on the primary itself.
set -eu
# The programs refuse root. In a user namespace without a mapping no process is root, and files keep their owner.
if [ "$(id -u)" -eq 0 ]; then
  unshare --user true || { echo "no user namespace can be made here: site docker needs user_namespaces = true"; exit 1; }
  exec unshare --user -- sh "$0" "$@"
fi
export LC_ALL=C PATH="$1:$PATH"
if [ ! -e "$2.whole" ]; then
  rm -rf "$2"
  if [ -z "$4" ]; then
    initdb --pgdata="$2" --username=postgres --auth=reject --encoding=UTF8 --locale=C --no-sync
    postgres --single -D "$2" -c exit_on_error=on template1 <<SQL
CREATE ROLE steelyard LOGIN REPLICATION
GRANT pg_monitor, pg_checkpoint TO steelyard
GRANT EXECUTE ON FUNCTION pg_promote(boolean, integer), pg_reload_conf() TO steelyard
CREATE DATABASE steelyard OWNER steelyard
SQL
  else
    # A database of the name `replication`, which $4 has, is none to others than replicas: the primary would log it.
    until pg_isready --quiet --dbname="$4 dbname=steelyard"; do sleep 0.1; done
    pg_basebackup --dbname="$4" --pgdata="$2" --checkpoint=fast --wal-method=stream --no-sync
  fi
  : > "$2.whole"
fi
[ -z "$4" ] || : > "$2/standby.signal"
# Processes of a server that was killed hold its memory for a moment longer; the seventh line names it.
held=$(sed -n '7s/.* //p' "$2/postmaster.pid" 2>/dev/null || :)
while [ -n "$held" ] && awk -v id="$held" '$2 == id && $7 > 0 { in_use = 1 } END { exit !in_use }' /proc/sysvipc/shm; do
  sleep 0.1
done
exec "$1/postgres" -D "$2" -c config_file="$3"
