"""`scontrol show partition`, as text or JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collectors.slurm.policy.text import (
    Reading,
    duration,
    list_of,
    names,
    needed,
    number_of,
    read,
    read_json,
    records,
    whole,
    word,
)
from estate.domain.policy import PartitionFact

COMMAND = "scontrol -o show partition"


def read_partitions(data: bytes) -> Reading[PartitionFact]:
    """Raises PolicyTextError for a text that is none."""
    if data.lstrip()[:1] == b"{":
        return read_json(data, ("partitions",), _from_json, COMMAND + " --json")
    return read(records(data, "PartitionName", COMMAND), _from_text)


def _from_text(fields: Mapping[str, str]) -> PartitionFact:
    memory = fields.get("MaxMemPerNode", "")
    return PartitionFact(
        name=needed(fields, "PartitionName"),
        state=needed(fields, "State"),
        is_default=fields.get("Default") == "YES",
        max_time_seconds=duration("MaxTime", fields.get("MaxTime", "")),
        default_time_seconds=duration("DefaultTime", fields.get("DefaultTime", "")),
        max_nodes=whole("MaxNodes", fields.get("MaxNodes", "")),
        min_nodes=whole("MinNodes", fields.get("MinNodes", "")) or 0,
        max_cpus_per_node=whole("MaxCPUsPerNode", fields.get("MaxCPUsPerNode", "")),
        max_memory_per_node_mib=whole("MaxMemPerNode", memory),
        allow_accounts=names(fields.get("AllowAccounts", "")),
        deny_accounts=names(fields.get("DenyAccounts", "")),
        allow_groups=names(fields.get("AllowGroups", "")),
        allow_qos=names(fields.get("AllowQos", "")),
        deny_qos=names(fields.get("DenyQos", "")),
        qos=word(fields.get("QoS", "")),
        priority_tier=whole("PriorityTier", fields.get("PriorityTier", "")),
        priority_job_factor=whole("PriorityJobFactor", fields.get("PriorityJobFactor", "")),
        preempt_mode=word(fields.get("PreemptMode", "")),
        billing_weights=word(fields.get("TRESBillingWeights", "")),
    )


def _from_json(found: Mapping[str, Any]) -> PartitionFact:
    return _nested(found) if isinstance(found.get("maximums"), dict) else _flat(found)


def _nested(found: Mapping[str, Any]) -> PartitionFact:
    """Data parser 0.0.39 and later; times are minutes."""
    most, qos = found["maximums"], found.get("qos", {})
    memory = number_of(most.get("partition_memory_per_node"))
    return PartitionFact(
        name=found["name"],
        state="+".join(list_of(found.get("partition", {}).get("state"))),
        is_default="DEFAULT" in list_of(found.get("flags")),
        max_time_seconds=_minutes(most.get("time")),
        default_time_seconds=_minutes(found.get("defaults", {}).get("time")),
        max_nodes=number_of(most.get("nodes")),
        min_nodes=number_of(found.get("minimums", {}).get("nodes")) or 0,
        max_cpus_per_node=number_of(most.get("cpus_per_node")),
        max_memory_per_node_mib=memory or None,
        allow_accounts=list_of(found.get("accounts", {}).get("allowed")),
        deny_accounts=list_of(found.get("accounts", {}).get("deny")),
        allow_groups=list_of(found.get("groups", {}).get("allowed")),
        allow_qos=list_of(qos.get("allowed")),
        deny_qos=list_of(qos.get("deny")),
        qos=word(qos.get("assigned", "")),
        priority_tier=number_of(found.get("priority", {}).get("tier")),
        priority_job_factor=number_of(found.get("priority", {}).get("job_factor")),
        preempt_mode="",
        billing_weights=found.get("tres", {}).get("billing_weights", ""),
    )


def _flat(found: Mapping[str, Any]) -> PartitionFact:
    """Data parser 0.0.38; times are minutes."""
    return PartitionFact(
        name=found["name"],
        state=found["state"],
        is_default="default" in list_of(found.get("flags")),
        max_time_seconds=_minutes(found.get("max_time_limit")),
        default_time_seconds=_minutes(found.get("default_time_limit")),
        max_nodes=number_of(found.get("maximum_nodes_per_job")),
        min_nodes=number_of(found.get("min nodes per job")) or 0,
        max_cpus_per_node=number_of(found.get("maximum_cpus_per_node")),
        max_memory_per_node_mib=number_of(found.get("maximum_memory_per_node")),
        allow_accounts=list_of(found.get("allowed_accounts")),
        deny_accounts=list_of(found.get("denied_accounts")),
        allow_groups=list_of(found.get("allowed_groups")),
        allow_qos=list_of(found.get("allowed_qos")),
        deny_qos=list_of(found.get("denied_qos")),
        qos=word(found.get("qos") or ""),
        priority_tier=number_of(found.get("priority_tier")),
        priority_job_factor=number_of(found.get("priority_job_factor")),
        preempt_mode="",
        billing_weights=found.get("billing_weights") or "",
    )


def _minutes(value: Any) -> int | None:
    minutes = number_of(value)
    return None if minutes is None else minutes * 60
