"""What runs in the sandbox to find the display: which cookie it takes, whether it answers, whether it is painted."""

from __future__ import annotations

#: With the hand. Prints one line of JSON: ``size``, ``blank``, ``xauthority``; or ``error``. Cookies are those of the
#: processes on the display, of its server, and of the homes; a session that starts late brings its own late, so each
#: round looks again.
LOOK_FOR_DISPLAY = r"""
import glob, json, os, sys, time
asked = json.loads(sys.argv[1])
sys.path.insert(0, asked["path"])
from deskhand_hand.errors import DeskhandError
from deskhand_hand.hand import Hand
display = asked["display"]
number = display.lstrip(":").partition(".")[0]

def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""

def cookies():
    if asked["xauthority"]:
        return [asked["xauthority"]]
    found = [None]
    for directory in glob.glob("/proc/[0-9]*"):
        held = dict(item.partition(b"=")[::2] for item in read(directory + "/environ").split(b"\0"))
        if held.get(b"DISPLAY", b"").decode(errors="replace").partition(".")[0] == ":" + number:
            if held.get(b"XAUTHORITY"):
                found.append(os.fsdecode(held[b"XAUTHORITY"]))
            elif held.get(b"HOME"):
                found.append(os.fsdecode(held[b"HOME"]) + "/.Xauthority")
        words = read(directory + "/cmdline").split(b"\0")
        if b"-auth" in words[:-1] and (":" + number).encode() in words:
            found.append(os.fsdecode(words[words.index(b"-auth") + 1]))
    return [path for path in dict.fromkeys(found) if path is None or os.path.isfile(path)]

def look():
    error = "nothing was tried"
    for path in cookies():
        hand = Hand(display, path, None, 5.0)
        try:
            size = hand.info()["size"]
            picture = hand.screenshot()
        except DeskhandError as said:
            error = str(said)
            continue
        finally:
            try:
                hand.close()
            except DeskhandError:
                pass
        return {"size": size, "blank": picture.blank, "xauthority": path}
    return {"error": error}

deadline = time.monotonic() + asked["seconds"]
while True:
    found = look()
    # No event tells when a server begins to listen, or when a session that is no client of ours has painted.
    if found.get("blank") is False or time.monotonic() >= deadline:
        break
    time.sleep(0.2)
print(json.dumps(found))
"""

#: With the image's own tools, as a shell function library: sets ``DISPLAY`` and finds ``XAUTHORITY``.
#: Prints ``deskhand-display WIDTH HEIGHT COLOURS XAUTHORITY``; or ``deskhand-error`` and a reason.
LOOK_WITH_TOOLS = r"""
for tool in xdotool import; do
  command -v $tool >/dev/null 2>&1 || { echo "deskhand-missing $tool"; exit 0; }
done
candidates() {
  if [ -n "$WANTED" ]; then echo "$WANTED"; return; fi
  echo -
  for process in /proc/[0-9]*; do
    held=$(tr '\0' '\n' < "$process/environ" 2>/dev/null) || continue
    case "$held" in
      *"DISPLAY=$DISPLAY"*) echo "$held" | sed -n 's/^XAUTHORITY=//p; s|^HOME=\(.*\)$|\1/.Xauthority|p' ;;
    esac
    tr '\0' '\n' < "$process/cmdline" 2>/dev/null | awk -v d="$DISPLAY" '
      seen { file = $0; seen = 0 } $0 == "-auth" { seen = 1 } $0 == d { ours = 1 } END { if (ours && file) print file }'
  done
}
look() {
  candidates | awk '!seen[$0]++' > "$LIST"
  while IFS= read -r file; do
    if [ "$file" = - ]; then unset XAUTHORITY; else [ -f "$file" ] || continue; export XAUTHORITY="$file"; fi
    size=$(timeout 5 xdotool getdisplaygeometry 2>/dev/null) || continue
    colours=$(timeout 20 import -window root -resize '128x128!' -depth 8 rgb:- 2>/dev/null |
      od -An -v -tx1 -w3 | sort -u | head -n 2 | wc -l)
    echo "deskhand-display $size ${colours:-0} $file"
    return
  done < "$LIST"
  echo "deskhand-error nothing answers as $DISPLAY"
}
LIST=$(mktemp) || exit 1
trap 'rm -f "$LIST"' EXIT
tries=$SECONDS_LEFT
while :; do
  found=$(look)
  set -- $found
  { [ "$1" = deskhand-display ] && [ "${4:-0}" -gt 1 ] 2>/dev/null; } && break
  tries=$((tries - 1))
  [ "$tries" -le 0 ] && break
  sleep 1
done
echo "$found"
"""
