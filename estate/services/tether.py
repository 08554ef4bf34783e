"""Processes that must not outlive their parent: `python -m estate.services.tether PARENT_PID PROGRAM…`.

Linux sends the signal when the parent dies, however it dies (prctl(2), PR_SET_PDEATHSIG; it survives exec). Imports nothing of Django.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with(parent_pid: int) -> None:
    """End the calling process by SIGTERM when its parent ends; at once if that happened already."""
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "prctl"):
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 (the program is ours, given by the supervisor)
