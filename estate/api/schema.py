"""How OpenAPI names what authenticates; importing this module is what tells it."""

from __future__ import annotations

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # its subclass hook is untyped
    """`Authorization: Bearer …`."""

    target_class = "estate.api.tokens.TokenAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:  # noqa: ARG002 - the framework's signature
        return {"type": "http", "scheme": "bearer"}
