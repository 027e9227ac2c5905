"""One fault done to a training over nodes, and the restart of the same command on the nodes that are left."""

import re
import time
from dataclasses import asdict, dataclass, field

from training import BadCheckpoint, Training

STEPS, EVERY = 40, 5  # of every training here; steps between its checkpoints
SETTINGS = ("train.global_batch=4", f"train.steps={STEPS}", f"checkpoint.every={EVERY}")
MOMENTS = ("step", "save", "start")
FAULTS = {  # what is done to the node
    "kill": lambda node: node.kill(),
    "power": lambda node: node.power_off(),
    "cut": lambda node: node.cut_link(),
    "cut20": lambda node: (node.cut_link(), time.sleep(20), node.restore_link()),
}


@dataclass
class Result:
    """The result of a trial. Times are in seconds."""

    fault: str
    moment: str
    hosts: list
    victim: str
    reached: bool = False  # the moment came before the end of the launch
    code: int | None = None  # of the launch; None: it did not end by itself
    hung: bool = False  # after the program's last word
    seconds: float = 0  # from the fault to the end of the launch
    left: list = field(default_factory=list)  # processes that were there some time after the end, but for ssh to the lost node
    named: bool = False  # a message of kzero names the victim
    lost: str = ""  # what is wrong with the newest checkpoint
    again_code: int | None = None
    again_hung: bool = False
    seconds_to_step: float | None = None  # from the restart to its first step; None: nothing was left to train
    same_bits: bool = False
    said: list = field(default_factory=list)  # messages of kzero and the launcher

    def json(self):
        return asdict(self)


def train_reference(cluster):
    """The newest checkpoint of an undisturbed training on the first node."""
    reference = Training(cluster, "reference", *SETTINGS)
    outcome = reference.launch([cluster.nodes[0]]).wait()
    if reference.exit_code(outcome) != 0:
        raise RuntimeError(f"the undisturbed training failed:\n{outcome.output}")
    return reference.verify()


def wait_for_moment(training, launch, moment, victim):
    """False: the launch ended first."""
    if moment == "step":
        return launch.wait_for(rf"^step +{EVERY + 2}/")
    if moment == "save":
        if not launch.wait_for(rf"^checkpoint after {EVERY} "):
            return False
        return poll(launch, lambda: any(training.saved.glob("*.partial")))
    program = str(training.command()[0])
    return poll(launch, lambda: any(line.startswith(program) for _, line in victim.processes()))


def poll(launch, condition):
    while not condition():
        if not launch.is_running():
            return False
        time.sleep(0.005)
    return True


def newest_checkpoint(training, announced):
    """(checkpoint or none, what is wrong with it). announced: the step of the last one that the run reported."""
    if announced == 0 and not any(path.suffix == "" for path in training.saved.glob("step_*")):
        return None, ""
    try:
        checkpoint = training.verify()
    except BadCheckpoint as problem:
        return None, str(problem)
    return checkpoint, "" if checkpoint.step >= announced else f"step {checkpoint.step}, though {announced} was reported"


def messages(output):
    return [line for line in output.splitlines() if re.search(r"kzero:|mpiexec|Connection to|EXIT CODE|BAD TERMINATION", line)]


def run_trial(
    cluster, name, fault, moment="step", victim=2, hosts=None, head=None, settings=(), limit=120, grace=10, reference=None
):
    """Returns the Result. victim: place in hosts; head: the node of mpiexec; limit: seconds from the fault to the launch's end;
    grace: seconds that processes may take to end after it; reference: the checkpoint to compare with."""
    hosts = list(hosts or cluster.nodes)
    node = hosts[victim]
    result = Result(fault, moment, [host.name for host in hosts], node.name)
    training = Training(cluster, name, *SETTINGS, *settings)
    launch = training.launch(hosts, head=head)
    try:
        result.reached = wait_for_moment(training, launch, moment, node)
        begin = time.monotonic()
        FAULTS[fault](node)
        outcome = launch.wait(limit)
        result.code, result.hung, result.seconds = outcome.code, outcome.hung, round(time.monotonic() - begin, 1)
        result.left = wait_for_none(launch, grace, node)
        result.said = messages(outcome.output)
        result.named = any(re.search(rf"^kzero: .*\b{node}\b", line) for line in result.said)
        launch.kill()
        _, result.lost = newest_checkpoint(training, training.announced(outcome.output))
        if fault != "cut20":
            restart(training, result, [host for host in hosts if host is not node])
        result.same_bits = reference is not None and newest_checkpoint(training, 0)[0] == reference
    finally:
        launch.kill()
        if fault != "cut20":
            node.kill()
            node.boot()
    return result


def wait_for_none(launch, seconds, lost):
    """The processes of a launch that are there after so many seconds. mpiexec leaves its ssh to a lost node behind, which waits until
    the kernel gives the connection up."""
    waiting = f"/usr/bin/ssh -F {launch.cluster.folder}/ssh_config -x {lost} "
    end = time.monotonic() + seconds
    while True:
        left = [line for _, line in launch.processes() if not line.startswith(waiting)]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.2)


def restart(training, result, hosts, limit=400):
    """Starts the same command on other nodes and waits for its end."""
    launch = training.launch(hosts)
    if launch.wait_for(r"^step +\d+/", limit):
        result.seconds_to_step = round(launch.seconds(), 1)
    outcome = launch.wait(limit)
    launch.kill()
    result.again_code, result.again_hung = training.exit_code(outcome), outcome.hung
    result.said += messages(outcome.output)
