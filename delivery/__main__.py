"""Run the delivery service: `python -m delivery`."""

import sys

from delivery.main import main

sys.exit(main())
