"""`python -m tools.contract` (`make contract`): writes docs/asyncapi.yaml and docs/schemas/ anew from the models."""

import sys

from tools.contract.files import DOCS, contract_files


def main() -> None:
    wanted = contract_files()
    for stale in set((DOCS / "schemas").glob("*.json")) - set(wanted):
        stale.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(wanted)} files written below {DOCS.name}/\n")


if __name__ == "__main__":
    main()
