"""GPU models by whatever name a scheduler gives them."""

from __future__ import annotations

from estate.domain.gpus import canonical_model
from estate.models import GpuModel, GpuModelAlias


class ModelIds:
    """Call with a printed name, get the id of its model; a name never seen before becomes a new model."""

    def __init__(self) -> None:
        self._known: dict[str, int] = dict(GpuModel.objects.values_list("name", "id"))
        self._known.update(GpuModelAlias.objects.values_list("alias", "gpu_model_id"))

    def __call__(self, printed: str) -> int:
        name = printed if printed in self._known else canonical_model(printed)
        if name not in self._known:
            self._known[name] = GpuModel.objects.get_or_create(name=name)[0].pk
        return self._known[name]
