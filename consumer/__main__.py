import sys

from consumer.main import main

sys.exit(main())
