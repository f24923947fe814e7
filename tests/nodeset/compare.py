"""Random sets, operations and steps: the example `hostlist` and ClusterShell must name the same hosts."""

import random
import subprocess
import sys

from ClusterShell.NodeSet import NodeSet, RESOLVER_NOGROUP

CASES = 400
SEED = 20261118
OPERATIONS = {"": NodeSet.update, "-x": NodeSet.difference_update, "-i": NodeSet.intersection_update, "-X": NodeSet.symmetric_difference_update}


def call(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"nodeset: {arguments}: {done.stderr}")
    return done.stdout.rstrip("\n")


def numbers(choose):
    """A bracket with single numbers, ranges and steps, all padded alike."""
    width = choose.choice([1, 1, 2, 4])
    items = []
    for _ in range(choose.randint(1, 6)):
        low = choose.randint(0, 60)
        high = low + choose.randint(1, 20)
        shape = choose.choice(["single", "range", "step"])
        step = f"/{choose.randint(1, 5)}" if shape == "step" else ""
        items.append(f"{low:0{width}}" if shape == "single" else f"{low:0{width}}-{high:0{width}}{step}")
    return f"[{','.join(items)}]"


def expression(choose):
    forms = [
        lambda: "n" + numbers(choose),
        lambda: "n" + numbers(choose),
        lambda: f"rack{numbers(choose)}n[1-{choose.randint(1, 4)}]",
        lambda: "gpu" + numbers(choose) + "-ib",
        lambda: choose.choice(["login", "n7", "n07"]),
    ]
    return ",".join(choose.choice(forms)() for _ in range(choose.randint(1, 3)))


def combined(program, choose):
    theirs = NodeSet(resolver=RESOLVER_NOGROUP)
    arguments = []
    for place in range(choose.randint(1, 4)):
        word = "" if place == 0 else choose.choice(list(OPERATIONS))
        text = expression(choose)
        OPERATIONS[word](theirs, NodeSet(text, resolver=RESOLVER_NOGROUP))
        arguments += [word, text] if word else [text]
    names = call(program, "-e", "-S", "\n", *arguments).split("\n") if len(theirs) else [""]
    assert call(program, "-c", *arguments) == str(len(theirs)), arguments
    assert sorted(names) == sorted(theirs) or (names == [""] and not theirs), arguments
    folded = NodeSet(call(program, "-f", "--autostep", "3", *arguments), resolver=RESOLVER_NOGROUP)
    assert folded == theirs, arguments
    return len(theirs)


def one_bracket(program, choose):
    """With one prefix, also the folded text must be the same."""
    text = "n" + numbers(choose)
    least = choose.randint(3, 5)
    for arguments, theirs in [
        ([], str(NodeSet(text))),
        (["--autostep", str(least)], str(NodeSet(text, autostep=least))),
    ]:
        ours = call(program, "-f", *arguments, text)
        assert ours == theirs, f"{arguments} {text}: {ours} instead of {theirs}"


def main(program):
    choose = random.Random(SEED)
    hosts = sum(combined(program, choose) for _ in range(CASES))
    for _ in range(CASES):
        one_bracket(program, choose)
    print(f"nodeset: {CASES} combinations with {hosts} hosts and {2 * CASES} folded texts agree with ClusterShell")


main(sys.argv[1])
