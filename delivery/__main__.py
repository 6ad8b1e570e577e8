import sys

from delivery.main import main

sys.exit(main())
