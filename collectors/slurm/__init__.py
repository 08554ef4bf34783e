"""How facts of a Slurm cluster get in: saved `sacct` dumps and node inventories, read as bytes and turned into typed records."""
