"""Prints what the installed packages need on some Python and requirements.txt does not have.

It is installed with --no-deps, so that nothing else would notice until that Python is used.
"""

from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parent
PYTHONS = ['3.11', '3.12', '3.13', '3.14']


def applies(requirement, python):
    # A late patch of each: what only the first of a series lack is not pinned.
    environment = {'python_version': python, 'python_full_version': f'{python}.9', 'extra': ''}
    return requirement.marker is None or requirement.marker.evaluate(environment)


pinned = [Requirement(line) for name in ['requirements.txt', 'build.txt'] for line in (HERE / name).read_text().splitlines()]
for python in PYTHONS:
    there = {canonicalize_name(requirement.name) for requirement in pinned if applies(requirement, python)}
    for distribution in distributions():
        for requirement in map(Requirement, distribution.requires or []):
            if applies(requirement, python) and canonicalize_name(requirement.name) not in there:
                print(f'{distribution.name} needs {requirement} on Python {python}')
