"""Read-only questions about collection."""
