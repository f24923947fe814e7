//! Slurm host-list expressions.
