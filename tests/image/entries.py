"""Desktop entries of a test's own, in desk's HOME."""

from __future__ import annotations

from tests.image.computers import Computer


def desk_environment(computer: Computer) -> dict[str, str]:
    """The environment of the session, as the panel has it."""
    pid = computer.pid_of("xfce4-panel")
    pairs = computer.run("cat", f"/proc/{pid}/environ", user="desk").strip("\0").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


class Entries:
    """Those of one test, taken away when it ends."""

    def __init__(self, computer: Computer) -> None:
        self._computer = computer
        self.home = desk_environment(computer)["HOME"]
        self._made: list[str] = []

    def add(self, id: str, name: str, command: str, below: str = ".local/share/applications") -> None:
        """Add an entry."""
        content = f"[Desktop Entry]\nType=Application\nName={name}\nExec={command}\n"
        self.write(f"{below}/{id}.desktop", content)

    def write(self, path: str, content: str) -> str:
        """Write a file as desk, at ``path`` below its HOME; gives its whole path."""
        path = f"{self.home}/{path}"
        script = 'mkdir -p "$(dirname "$1")" && cat > "$1"'
        self._computer.run("sh", "-c", script, "sh", path, user="desk", stdin=content)
        self._made.append(path)
        return path

    def remove(self) -> None:
        """Remove what was added."""
        if self._made:
            self._computer.run("rm", "-f", *self._made, user="desk")
