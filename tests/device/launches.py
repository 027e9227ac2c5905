"""Parts with several ranks on one device, and with state outside the device: offload, checkpoints, restarts, inference."""

import shutil

from correctness import report_tests
from gtest_run import test_program
from training import expect_bits, largest_difference, train

SMALL = {
    "train.steps": 6,
    "train.global_batch": 8,
    "train.micro_batch": 1,
    "train.precision": "bf16",
    "data.format": "bytes",
    "run.communicator": "mpi",
    "run.peak_tflops": 1,
    "run.attention": "kzero",
}
TINY = "tiny.toml"
PROGRAMS = (
    ("test_comm", 2),
    ("test_zero", 2),
    ("test_reference", 2),
    ("test_engine", 2),
    ("test_parity", 2),  # minutes: MPI moves messages through host memory
    ("test_parity", 4),
)
TENSOR_LOSS = 2e-2  # of a loss of about 5 in bf16: partial sums are rounded before they are added
STOPPED = 75  # exit code: with a checkpoint


def small(machine, clock, name, changes, ranks=None, options=()):
    """A short training of a small model. `options`: of mpiexec."""
    clock.require(5)
    overrides = SMALL | {"data.files": machine.bundle / "text"} | changes
    return train(machine, name, TINY, overrides, min(90, clock.left()), ranks, options)


def ranks(machine, clock, found):
    """Two to four ranks on one device over MPI: the bits of one rank, in every stage."""
    alone = small(machine, clock, "one_rank", {})
    if not found.check("one rank", alone.is_complete(), alone.done.how()):
        return
    for stage in (0, 1, 2, 3):
        expect_bits(found, f"2 ranks, stage {stage}", small(machine, clock, f"stage_{stage}", {"zero.stage": stage}, 2), alone)
    expect_bits(found, "4 ranks, stage 3", small(machine, clock, "stage_3_np4", {"zero.stage": 3}, 4), alone)
    overlapped = {"zero.stage": 3, "zero.overlap": "on"}
    expect_bits(found, "4 ranks, overlap", small(machine, clock, "overlap", overlapped, 4), alone)
    tensor = small(machine, clock, "tensor", {"grid.tensor": 2}, 2)
    far = largest_difference(tensor.losses(), alone.losses())
    text = f"losses differ by {far:.1e}, at most {TENSOR_LOSS:.0e}" if tensor.is_complete() else tensor.done.how()
    found.check("2 tensor ranks", far <= TENSOR_LOSS, text)
    for program, count in PROGRAMS:
        if machine.has(program):
            clock.require(10)
            report_tests(found, f"{program} np{count}", test_program(machine, clock, program, count))
        else:
            found.leave_out(f"{program} np{count}", "is not in the bundle")


def offload(machine, clock, found):
    """State and activations in host memory, and checkpoints: no bit changes."""
    plain = small(machine, clock, "plain", {})
    if not found.check("without offload", plain.is_complete(), plain.done.how()):
        return
    host = {"zero.offload": "host"}
    recomputed = {"recompute.mode": "full", "recompute.offload": "host"}
    expect_bits(found, "zero.offload", small(machine, clock, "offload", host), plain)
    expect_bits(found, "recompute.offload", small(machine, clock, "recompute", recomputed), plain)
    expect_bits(found, "both, 2 ranks, stage 3", small(machine, clock, "both", host | recomputed | {"zero.stage": 3}, 2), plain)
    for asynchronous in ("false", "true"):
        restart(machine, clock, found, plain, asynchronous)
    use_checkpoint(machine, clock, found)


def restart(machine, clock, found, plain, asynchronous):
    """Three steps, and the other three after a restart, on the same checkpoint folder."""
    name = "asynchronous" if asynchronous == "true" else "checkpoint"
    folder = machine.work / f"{name}.saved"
    shutil.rmtree(folder, ignore_errors=True)
    keys = {"checkpoint.folder": folder, "checkpoint.every": 2, "checkpoint.asynchronous": asynchronous}
    first = small(machine, clock, f"{name}.first", keys | {"run.max_steps": 3})
    if not found.check(f"{name}: stopped", first.done.code == STOPPED, first.done.how()):
        return
    second = small(machine, clock, f"{name}.second", keys)
    if not found.check(f"{name}: resumed", second.is_complete(), second.done.how()):
        return
    same = first.bits() + second.bits() == plain.bits()
    found.check(f"{name}: bits", same, "those of a run without a stop" if same else "other than those of a run without a stop")


def use_checkpoint(machine, clock, found):
    """Commands that read the last checkpoint."""
    folder = machine.work / "checkpoint.saved"
    for name, arguments in (
        ("inspect", ("inspect", folder, "--verify")),
        ("generate", ("generate", folder, "--prompt", "for (", "--max-tokens", 20)),
        ("evaluate", ("evaluate", folder, machine.bundle / "text", "--format", "bytes", "--tokens", 20000)),
    ):
        clock.require(5)
        done = machine.run(name, machine.command("kzero", *arguments), min(60, clock.left()))
        found.check(name, done.code == 0, done.how())
