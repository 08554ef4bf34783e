"""GPU models by whatever name a scheduler gives them."""

from __future__ import annotations

from collections.abc import Callable

from estate.domain.gpus import canonical_model
from estate.models import GpuModel, GpuModelAlias


class ModelIds:
    """Call with a printed name, get the id of its model; a name never seen before becomes a new model.

    `before_query` is called before the database is asked (a load may be using the connection).
    """

    def __init__(self, before_query: Callable[[], None] = lambda: None) -> None:
        self._before_query = before_query
        self._known: dict[str, int] = dict(GpuModel.objects.values_list("name", "id"))
        self._known.update(GpuModelAlias.objects.values_list("alias", "gpu_model_id"))

    def __call__(self, printed: str) -> int:
        name = printed if printed in self._known else canonical_model(printed)
        if name not in self._known:
            self._before_query()
            self._known[name] = GpuModel.objects.get_or_create(name=name)[0].pk
        return self._known[name]
