import sys

from examples.birthdays.main import main

sys.exit(main())
