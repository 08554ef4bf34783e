"""Evidence that a job pins its software environment: the container that its submission names. Pure."""

from __future__ import annotations

import re

LENGTH = 255
_IMAGE_OPTION = re.compile(r"--container(?:-image)?[= ]\s*[\"']?([^\s\"']+)")
_RUNTIME = re.compile(
    r"\b(?:apptainer|singularity|podman|docker|sarus|shifter|charliecloud|ch-run)\b[^;|&]*?"
    r"(?:\s--image[= ]\s*|\s)[\"']?([^\s\"'-][^\s\"']*(?:\.sif|\.sqsh|://[^\s\"']+|/[^\s\"':]+:[\w.-]+))"
)


def environment_of(container: str, submit_line: str) -> str:
    """The image or bundle in `Container` (an OCI bundle), else in `SubmitLine`; empty where neither names one."""
    if container and container not in {"None", "(null)", "N/A"}:
        return container[:LENGTH]
    found = _IMAGE_OPTION.search(submit_line) or _RUNTIME.search(submit_line)
    return found[1][:LENGTH] if found else ""
