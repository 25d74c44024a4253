"""The X11 wire protocol: about forty requests over plain sockets, standard library only.

- ``connection``  one connection: requests, replies, errors; events handed to subscribers
- ``wire``        its socket, with a deadline on every wait
- ``extensions``  where the server put its extensions, and the names that follow from it
- ``display_name``, ``auth``  where the server is, and the cookie it asks for
- ``events``      the 32-byte events, decoded
- ``core``        requests of the X Window System Protocol
- ``xtest`` ``shm`` ``damage`` ``xfixes`` ``randr`` ``xkb`` ``xres``  those of the extensions, one file each
- ``keysyms`` ``protocol``  generated tables
"""

from .connection import Connection, Extension
from .events import Event

__all__ = ["Connection", "Event", "Extension"]
