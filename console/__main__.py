import sys

from console.main import main

sys.exit(main(sys.argv[1:]))
