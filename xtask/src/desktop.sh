# A desktop of its own: an X server in memory, a session bus and a window manager, and for tests a home and an open
# keyring. Prints what others need in their environment, then an empty line. Ends with the process $1.
#   desktop.sh PID          a display for a program that a person runs; home and keyring stay the person's
#   desktop.sh PID tests    a desktop for tests; what they leave behind goes with it
set -eu
owner=$1
purpose=${2:-}
started=()
stage=starting

# A short path, since sockets lie in it.
folder=$(mktemp -d /tmp/tabwarden-desktop.XXXXXX)
# What the programs below say is of interest only if one of them does not start.
exec 5>&2 2>"$folder/log"

end() {
  if [ "$stage" = starting ]; then cat "$folder/log" >&5; fi
  kill "${started[@]}" || true
  rm -rf "$folder"
}
trap end EXIT
trap 'exit 1' TERM
# Ctrl-C is for the program on the desktop, which still needs it while it ends.
trap '' INT

unset WAYLAND_DISPLAY
if [ "$purpose" = tests ]; then
  export HOME=$folder/home XDG_RUNTIME_DIR=$folder/run
  mkdir -m 0700 "$HOME" "$XDG_RUNTIME_DIR"
  unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME DBUS_SESSION_BUS_ADDRESS
  echo "HOME=$HOME"
  echo "XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR"
fi

# It picks a free number itself, and says it when it can be connected to. Only who has the cookie may: without one, every
# user of this machine could look at the browser and type in it. (The server takes the cookie whatever its number.)
export XAUTHORITY=$folder/Xauthority
cookie=$(mcookie)
xauth -q add :0 . "$cookie"
exec 3< <(exec Xvfb -displayfd 1 -auth "$XAUTHORITY" -screen 0 1280x800x24 -nolisten tcp)
started+=($!)
read -r number <&3
export DISPLAY=:$number
xauth -q add "$DISPLAY" . "$cookie"
echo "DISPLAY=$DISPLAY"
echo "XAUTHORITY=$XAUTHORITY"

if [ -z "${DBUS_SESSION_BUS_ADDRESS:-}" ]; then
  exec 4< <(exec dbus-daemon --session --nofork --print-address=1)
  started+=($!)
  read -r DBUS_SESSION_BUS_ADDRESS <&4
  export DBUS_SESSION_BUS_ADDRESS
  echo "DBUS_SESSION_BUS_ADDRESS=$DBUS_SESSION_BUS_ADDRESS"
fi

openbox >/dev/null &
started+=($!)
until xprop -root -notype _NET_SUPPORTING_WM_CHECK | grep -q 'window id'; do
  kill -0 "${started[-1]}"
  sleep 0.05
done

if [ "$purpose" = tests ]; then
  # Any password will do: the keyring is made now, and goes with the folder. The daemon goes with the bus.
  printf tests | gnome-keyring-daemon --unlock --components=secrets >/dev/null
  printf open | secret-tool store --label=open tabwarden-tests open
fi

stage=started
echo
exec >/dev/null
tail --pid="$owner" -f /dev/null &
started+=($!)
wait $!
