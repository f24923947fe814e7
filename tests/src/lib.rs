//! Whole-system tests of slurm-elastic; see `tests/`.
