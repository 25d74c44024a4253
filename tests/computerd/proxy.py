"""A way to computerd on which an answer can be lost: a proxy that passes bytes on, and cuts when it is told to."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Proxy:
    """Passes connections on to ``target``; ``lose_next`` has the next answer dropped and its connection ended."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._losing = threading.Event()
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.2)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def lose_next(self) -> None:
        self._losing.set()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(10)
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server:
            while not self._ended.is_set():
                for one in select.select([client, server], [], [], 0.2)[0]:
                    try:
                        data = one.recv(1 << 16)
                    except OSError:
                        return
                    if not data:
                        return
                    if one is server and self._losing.is_set():
                        self._losing.clear()
                        return
                    try:
                        (client if one is server else server).sendall(data)
                    except OSError:
                        return


@contextmanager
def proxy(target: tuple[str, int]) -> Iterator[Proxy]:
    passing = Proxy(target)
    try:
        yield passing
    finally:
        passing.close()
