"""`python -m tools.reference` (`make reference`): writes docs/reference anew from the code."""

import sys

from tools.reference.pages import REFERENCE_PAGES


def main() -> None:
    for path, page in REFERENCE_PAGES.items():
        path.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{len(REFERENCE_PAGES)} pages written below docs/reference/\n")


if __name__ == "__main__":
    main()
