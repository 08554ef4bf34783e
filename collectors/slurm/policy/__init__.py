"""What Slurm's tools say of its rules, read into facts: text or JSON in, facts and refused entries out. Pure."""
