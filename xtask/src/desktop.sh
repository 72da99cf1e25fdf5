# A desktop of its own: an X server in memory, a session bus, a window manager and an open keyring, and for tests a home.
# Prints what others need in their environment, then an empty line. Ends with the process $1.
#   desktop.sh PID FOLDER   a desktop for a program that a person runs; its keyring is kept in the folder
#   desktop.sh PID          a desktop for tests; what they leave behind goes with it
set -eu
owner=$1
keyrings=${2:-}
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

# The person's bus and keyring belong to another desktop, or to none that could ask for the keyring's password.
unset WAYLAND_DISPLAY DBUS_SESSION_BUS_ADDRESS
mkdir -m 0700 "$folder/run"
if [ -z "$keyrings" ]; then
  export HOME=$folder/home XDG_RUNTIME_DIR=$folder/run
  mkdir -m 0700 "$HOME"
  unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME
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

# What the bus starts, the keyring among it, lives in folders of this desktop.
mkdir -p -m 0700 "${keyrings:=$folder/keyrings}"
own=(env "XDG_RUNTIME_DIR=$folder/run" "XDG_DATA_HOME=$keyrings")
exec 4< <(exec "${own[@]}" dbus-daemon --session --nofork --print-address=1)
started+=($!)
read -r DBUS_SESSION_BUS_ADDRESS <&4
export DBUS_SESSION_BUS_ADDRESS
echo "DBUS_SESSION_BUS_ADDRESS=$DBUS_SESSION_BUS_ADDRESS"

openbox >/dev/null &
started+=($!)
until xprop -root -notype _NET_SUPPORTING_WM_CHECK | grep -q 'window id'; do
  kill -0 "${started[-1]}"
  sleep 0.05
done

# With a closed keyring Chromium asks for its password and loads no page until somebody answers, and here nobody does.
# So this one opens with a password that is no secret: it keeps no more than the folder's permissions do.
# The daemon goes with the bus.
printf tabwarden | "${own[@]}" gnome-keyring-daemon --unlock --components=secrets >/dev/null
printf open | secret-tool store --label=open tabwarden-desktop open

stage=started
echo
exec >/dev/null
tail --pid="$owner" -f /dev/null &
started+=($!)
wait $!
