"""The launcher: lists, starts and ends applications as the desktop's account, for computerd in another one.

``server`` runs as ``desk`` beside the desktop; ``client`` is computerd's end of its socket. See ``server`` for what is
said over it.
"""
