import sys

from deskhand.fleet.page.server import main

sys.exit(main())
