"""CPU of `startnode` for a thousand nodes, ours compared with an earlier executable: bench/run startnode EXECUTABLE.

Both start and end the same nodes on the same slurmctld and loopback cloud, by turns; the best of several counts, because the
machine may be busy. User and system time of the program and of all that it calls.
"""

import pathlib
import subprocess
import sys

import programs

NODES, ROUNDS, MOST = 1000, 5, 1.02


def cpu(bed, executable, subcommand, *words):
    """Seconds of CPU of one call, which has to end well."""
    before = programs.children()
    call = [executable, subcommand, "--config", bed.config(bed.endpoint), *words]
    process = subprocess.run(call, env={}, stdout=subprocess.DEVNULL)
    if process.returncode != 0:
        sys.exit(f"startnode: {executable} {subcommand} ended with {process.returncode}")
    return programs.children() - before


def main(before, after):
    best = {before: float("inf"), after: float("inf")}
    with programs.Bed(programs.folder(), NODES) as bed:
        for _ in range(ROUNDS):
            for executable in (before, after):
                best[executable] = min(best[executable], cpu(bed, executable, "start", bed.hosts))
                cpu(bed, executable, "stop", "--now", bed.hosts)
    for executable, seconds in best.items():
        print(f"{seconds:8.3f} s of CPU for {NODES} nodes: {executable}")
    ratio = best[after] / best[before]
    print(f"{ratio:8.3f} times the CPU of before, at most {MOST}: {'met' if ratio <= MOST else 'MISSED'}")
    return ratio > MOST


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    ours = sys.argv[2] if len(sys.argv) > 2 else programs.built("slurm-elastic")
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), str(pathlib.Path(ours).resolve())))
