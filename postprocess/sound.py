"""Decides which records of a metrics file can be used: a damaged file may contain values of other types than a run writes.

A shape is a type, a list of one shape, or a dictionary of shapes; NAMES means any name. A record may lack keys, except REQUIRED ones,
because older versions of kzero wrote fewer.
"""

NAMES = object()
NUMBER, OPTIONAL, COUNT, TEXT, TRUTH = "a finite number", "a number or null", "a count", "a text", "true or false"

SPREAD = {"min": NUMBER, "max": NUMBER}
NODE = {"host": TEXT, "first_rank": COUNT, "compute_seconds": NUMBER, "wait_seconds": NUMBER, "no_core_seconds": NUMBER, "busiest_rank": COUNT,
        "busiest_seconds": NUMBER}  # fmt: skip
MEMORY = {"rank": COUNT, "resident_peak_bytes": COUNT, "categories": {NAMES: {"planned_bytes": COUNT, "peak_bytes": COUNT}}}
TRAFFIC = {
    "group": TEXT,
    "operation": TEXT,
    "purpose": TEXT,
    "elements_per_step": NUMBER,
    "bytes_per_step": NUMBER,
    "expected_elements_per_step": NUMBER,
}
ENERGY = {
    "joules": OPTIONAL,
    "sources": [TEXT],
    "nodes": COUNT,
    "measured_nodes": COUNT,
    "devices": COUNT,
    "measured_devices": COUNT,
}
ANY = {"time": NUMBER, "seconds": NUMBER, "stall_seconds": NUMBER, "step": COUNT}
SHAPES = {
    "start": {"first_step": COUNT, "process_seconds": NUMBER, "deck": TEXT, "hosts": [TEXT], "grid": {"data": COUNT, "tensor": COUNT}, "steps": COUNT,
              "versions": {NAMES: TEXT}, "parameters": COUNT, "precision": TEXT, "peak": {"flops_per_second": NUMBER, "source": TEXT, "disturbed": TRUTH}},
    "step": {"loss": OPTIONAL, "grad_norm": OPTIONAL, "lr": OPTIONAL, "tokens": COUNT, "tokens_per_second": OPTIONAL, "mfu": OPTIONAL, "loss_scale": OPTIONAL,
             "skipped": TRUTH, "pairs": COUNT, "chosen_reward": OPTIONAL, "rejected_reward": OPTIONAL, "accuracy": OPTIONAL, "cross_entropy": OPTIONAL, "kl": OPTIONAL, "expert_load": [NUMBER],
             "expert_entropy": [NUMBER]},
    "validation": {"loss": OPTIONAL},
    "evaluation": {"loss": OPTIONAL, "name": TEXT},
    "nodes": {"steps": COUNT, "count": COUNT, "by": TEXT, "compute_seconds": SPREAD, "wait_seconds": SPREAD, "nodes": [NODE], "joules": OPTIONAL},
    "end": {"reason": TEXT, "signal": TEXT, "steps": COUNT, "memory": [MEMORY], "traffic": [TRAFFIC], "energy": ENERGY},
}  # fmt: skip
REQUIRED = (SPREAD, NODE, MEMORY, TRAFFIC, ENERGY, MEMORY["categories"][NAMES])  # shapes that must have all of their keys
STEPPING = ("step", "validation", "evaluation", "checkpoint", "nodes")  # events that are of a step
LARGEST = 2**62


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < LARGEST


def has_shape(value, shape):
    if shape is NUMBER:
        return is_number(value)
    if shape is OPTIONAL:
        return value is None or is_number(value)
    if shape is COUNT:
        return is_number(value) and isinstance(value, int) and value >= 0
    if shape is TEXT:
        return isinstance(value, str)
    if shape is TRUTH:
        return isinstance(value, bool)
    if isinstance(shape, list):
        return isinstance(value, list) and all(has_shape(one, shape[0]) for one in value)
    if not isinstance(value, dict) or (shape in REQUIRED and not shape.keys() <= value.keys()):
        return False
    if NAMES in shape:
        return all(has_shape(one, shape[NAMES]) for one in value.values())
    return all(has_shape(value[key], inner) for key, inner in shape.items() if key in value)


def is_sound(record):
    """Whether a line's value is a record that the scripts of this folder can use. True for events that they do not know."""
    if not isinstance(record, dict) or not isinstance(record.get("event"), str):
        return False
    event = record["event"]
    if event in STEPPING and "step" not in record or event == "nodes" and not record.get("steps"):
        return False
    return has_shape(record, ANY) and has_shape(record, SHAPES.get(event, {}))
