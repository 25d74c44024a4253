"""``python -m bench``: see ``bench.run``."""

import signal
import sys

from bench.run import main

# So that what it has started ends with it.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())
