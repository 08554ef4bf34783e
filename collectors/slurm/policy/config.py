"""`scontrol show config`: how the scheduler is set up, as far as it says what limits and numbers are worth. Pure."""

from __future__ import annotations

import re

from collectors.slurm.policy.text import PolicyTextError, duration, names, text_of, word
from estate.domain.policy import ConfigFact

COMMAND = "scontrol show config"
_LINE = re.compile(r"^(\w+(?:\[\d+\])?)\s*=\s?(.*)$", re.MULTILINE)
_WEIGHT = "PriorityWeight"


def is_config(data: bytes) -> bool:
    return data.startswith(b"Configuration data as of")


def read_config(data: bytes) -> ConfigFact:
    """Raises PolicyTextError when it is none, or cut before AccountingStorageEnforce."""
    text = text_of(data)
    found = {key: value.strip() for key, value in _LINE.findall(text or "")}
    if "AccountingStorageEnforce" not in found:
        raise PolicyTextError(f"the text has no AccountingStorageEnforce; write it with: {COMMAND}")
    try:
        half_life = duration("PriorityDecayHalfLife", found.get("PriorityDecayHalfLife", ""))
    except ValueError as exc:
        raise PolicyTextError(str(exc)) from exc
    return ConfigFact(
        version=found.get("SLURM_VERSION", ""),
        enforces=names(found["AccountingStorageEnforce"]),
        tracked_tres=names(found.get("AccountingStorageTRES", "")),
        gres_types=names(found.get("GresTypes", "")),
        select_type=word(found.get("SelectType", "")),
        priority_type=word(found.get("PriorityType", "")),
        half_life_seconds=half_life,
        usage_reset_period=word(found.get("PriorityUsageResetPeriod", "")),
        preempt_type=word(found.get("PreemptType", "")),
        private_data=names(found.get("PrivateData", "")),
        weights=tuple((key.removeprefix(_WEIGHT), value) for key, value in found.items() if key.startswith(_WEIGHT)),
    )
