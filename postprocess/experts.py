"""How evenly the routers of a run share tokens out among experts: `expert_load` and `expert_entropy` of docs/metrics.md."""

import math
import statistics

LOAD, ENTROPY = 0, 1


def of_step(record):
    """(load, entropy) by block. A block without choices has none, and neither has a step of a model without experts."""
    pairs = zip(record.get("expert_load", []), record.get("expert_entropy", []))
    return {block: pair for block, pair in enumerate(pairs) if pair[LOAD]}


def of(run):
    """The blocks of each step; empty if the run has no record of experts."""
    steps = [of_step(record) for record in run.steps]
    return steps if any(steps) else []


def blocks(steps):
    """The blocks that any of the steps has, in order."""
    return sorted(set().union(*steps))


def over_blocks(steps, value, pick):
    """A value of each step that stands for its blocks, by a function such as max; NaN where the step has no choices."""
    return [pick(pair[value] for pair in step.values()) if step else math.nan for step in steps]


def of_block(steps, value, block):
    return [step[block][value] if block in step else math.nan for step in steps]


def words(run):
    """The last fiftieth of the steps in words: the median block, and the block with the busiest expert."""
    steps = [step for step in of(run) if step]
    last = steps[-max(1, len(steps) // 50) :]
    found = {
        block: [statistics.fmean(step[block][value] for step in last if block in step) for value in (LOAD, ENTROPY)]
        for block in blocks(last)
    }
    busiest = max(found, key=lambda block: found[block][LOAD])
    text = "block {} has the busiest expert, {:.2f} times the mean, and entropy {:.3f}".format(busiest, *found[busiest])
    if len(found) == 1:
        return text
    load, entropy = (statistics.median(pair[value] for pair in found.values()) for value in (LOAD, ENTROPY))
    return f"{text}; medians of {len(found)} blocks {load:.2f} and {entropy:.3f}"
