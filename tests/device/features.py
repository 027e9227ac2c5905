"""The part that asks whether features that change the arithmetic give a host's losses on a device: documents, dropout, optimizers,
adapters, tiles, sequence ranks. Their decks are small Llamas."""

from training import expect_bits, exported, initial_weights, largest_difference, read_references, train

DECK = "llama/small.toml"
STEPS = 5
SMALL_LLAMA = {
    "train.steps": STEPS,
    "train.global_batch": 4,
    "train.micro_batch": 1,
    "optimizer.warmup": 0,
    "train.validate_every": 0,
    "data.order": "sequential",
    "data.validation_fraction": 0,
    "checkpoint.folder": "",
    "checkpoint.every": 0,
    "run.communicator": "mpi",
    "run.peak_tflops": 1,
}
# In fp32, the order of sums alone differs between a host and a device. The rate of the deck is high, so five steps enlarge it.
LOSS = 1e-3
LINE_END = 10  # a token that ends a document
FROZEN = "frozen"  # the name of the weights below adapters

# (name, overrides), what is most used first
CASES = (
    ("llama", {}),
    ("documents", {"data.end_token": LINE_END}),
    ("muon", {"optimizer.kind": "muon"}),
    ("lora", {"lora.rank": 4, "lora.targets": "all-linear"}),
    ("dropout", {"model.dropout": 0.1, "model.attention_dropout": 0.1}),
    ("sequence chunks", {"train.sequence_chunks": 2}),
    ("tiles", {"train.tile_rows": 48, "recompute.mode": "feed_forward"}),
    ("adafactor", {"optimizer.kind": "adafactor", "zero.offload": "host"}),  # it computes on hosts alone
)
# The same bits on two ranks: (name of the case, what else changes)
ON_TWO_RANKS = (
    ("documents", {"zero.stage": 3}),
    ("sequence chunks", {"grid.sequence": 2, "zero.stage": 2}),
    ("muon", {"zero.stage": 3}),
    ("lora", {"zero.stage": 2}),
)


def train_case(machine, name, changes, seconds, ranks=None):
    """A training of a case. Adapters get the initial weights of the same model, which need no adapters, as frozen weights."""
    overrides = SMALL_LLAMA | {"train.precision": "fp32", "data.files": machine.bundle / "text"} | changes
    if "lora.rank" in changes:
        frozen = exported(machine, FROZEN)
        if not frozen.exists():
            without = {key: value for key, value in overrides.items() if not key.startswith(("lora.", "zero."))}
            initial_weights(machine, FROZEN, DECK, without, seconds)
        overrides["model.initial"] = frozen
    return train(machine, f"{name.replace(' ', '_')}.np{ranks or 1}", DECK, overrides, seconds, ranks)


def features(machine, clock, found):
    """Losses of each case against a host's, and the bits of two ranks."""
    references = read_references(machine.bundle).get("features", {})
    alone = {}
    for name, changes in CASES:
        clock.require(5)
        alone[name] = training = train_case(machine, name, changes, min(60, clock.left()))
        if not training.is_complete():
            found.check(name, False, training.done.how())
        elif name not in references:
            found.leave_out(name, "the bundle has no reference")
        else:
            far = largest_difference(training.losses(), references[name])
            found.check(name, far <= LOSS, f"losses differ from the host's by {far:.1e}, at most {LOSS:.0e}")
        found.values[name] = training.losses()
    for name, changes in ON_TWO_RANKS:
        if alone[name].is_complete():
            clock.require(5)
            both = train_case(machine, name, dict(CASES)[name] | changes, min(60, clock.left()), 2)
            expect_bits(found, f"{name} on 2 ranks", both, alone[name])
