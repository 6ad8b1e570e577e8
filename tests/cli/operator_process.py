"""One process that runs `duebell` command lines one after the other, as main() would: a JSON line with arguments and
stdin in, a JSON line with what was printed and the exit status out. Starting Python is what takes the time.
"""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

from cli.app import main


def run(arguments: list[str], stdin: str) -> dict[str, object]:
    out, err, status = io.StringIO(), io.StringIO(), 0
    sys.argv, sys.stdin = ["duebell", *arguments], io.StringIO(stdin)
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)
    return {"status": status, "out": out.getvalue(), "err": err.getvalue()}


if __name__ == "__main__":
    for line in sys.__stdin__ or ():
        wanted = json.loads(line)
        sys.stdout.write(json.dumps(run(wanted["arguments"], wanted["stdin"])) + "\n")
        sys.stdout.flush()
