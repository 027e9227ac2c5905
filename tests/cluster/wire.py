"""Bytes that nodes send over their links in a step of a training, measured and by kzero's own traffic table."""

from statistics import mean

FEW, MANY = 1, 4  # steps of two runs, whose difference leaves out start and end


class RunFailed(RuntimeError):
    """A run that did not complete, with its output."""


def table_bytes(training):
    """Bytes that one rank sends to other nodes in a step, by the traffic table of the run's end."""
    return sum(row["bytes_between_nodes_per_step"] for row in training.records("end")[-1]["traffic"])


def run(training, hosts, ranks, steps):
    """Trains so many steps. Returns {node's name: bytes sent}."""
    before = training.cluster.traffic()
    outcome = training.launch(hosts, f"train.steps={steps}", ranks=ranks).wait()
    if training.exit_code(outcome) != 0:
        raise RunFailed(outcome.output)
    after = training.cluster.traffic()
    return {host.name: after[host.name].sent_bytes - before[host.name].sent_bytes for host in hosts}


def bytes_of_a_step(few, many, hosts, ranks):
    """Runs two trainings that differ in their folders alone. Returns the mean over nodes of the bytes that each sends in a step."""
    start = run(few, hosts, ranks, FEW)
    total = run(many, hosts, ranks, MANY)
    return mean((total[name] - start[name]) / (MANY - FEW) for name in total)
