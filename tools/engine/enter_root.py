"""`python -m tools.engine.enter_root COMMAND …` makes the engine's directory the root of the process's mount namespace.

Started in a mount namespace of its own. A change of the process's root alone (chroot) would not do: what later joins
the namespace of a container, as health checks do, would find itself in the root of this machine.
"""

import ctypes
import os
import sys

from tools.engine.layout import ENGINE_ROOT

MNT_DETACH = 2


def main() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    os.chdir(ENGINE_ROOT)
    # Afterwards the old root is mounted upon the new one, at the same place, and the next call takes it away.
    if libc.pivot_root(b".", b".") != 0 or libc.umount2(b".", MNT_DETACH) != 0:
        raise OSError(ctypes.get_errno(), "the root of the mount namespace could not be changed")
    os.chdir("/")
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606  (no shell is wanted)


if __name__ == "__main__":
    main()
