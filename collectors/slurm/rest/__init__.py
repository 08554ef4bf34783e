"""slurmrestd: its JSON as the texts that sacct would print, so that both ways of asking Slurm end in the same records."""
