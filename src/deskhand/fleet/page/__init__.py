"""The status page of a fleet, and its metrics, over HTTP.

- ``status``    ``StatusPage``: beside the fleet; starts the server, tells it how the fleet is, starts it again
- ``server``    the server's process, ``python -m deskhand.fleet.page``: it can ask the fleet nothing
- ``token``     who may see it: a file with the token, for its owner
- ``routes``    the page, its stream, the metrics, and who may see them
- ``news``      how the fleet is now, and how it was
"""
