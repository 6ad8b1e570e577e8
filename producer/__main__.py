import sys

from producer.main import main

sys.exit(main())
