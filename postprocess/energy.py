"""The energy of a run: of all its launches, also of steps that a later launch repeated."""

SIZES = ((3.6e9, "MWh"), (3.6e6, "kWh"), (1e6, "MJ"), (1e3, "kJ"), (1, "J"), (1e-3, "mJ"))


def of_launch(launch):
    """Joules of a launch, by its end record, or up to its last record of nodes if it was killed; None if nothing was measured."""
    ends = [record["energy"]["joules"] for record in launch if record.get("event") == "end" and "energy" in record]
    if ends:
        return ends[-1]
    parts = [record["joules"] for record in launch if record.get("event") == "nodes" and "joules" in record]
    return sum(parts) if parts and None not in parts else None


def of(run):
    """(joules, how many launches they leave out), None if no launch was measured."""
    found = [of_launch(launch) for launch in run.launches]
    known = [joules for joules in found if joules is not None]
    return (sum(known), len(found) - len(known)) if known else None


def text(joules):
    size, unit = next((pair for pair in SIZES if joules >= pair[0]), SIZES[-1])
    return f"{joules / size:.3g} {unit}"


def words(run):
    """The energy of the run, and what it leaves out."""
    if not (found := of(run)):
        return ""
    joules, missing = found
    energy = run.end.get("energy", {})
    parts = (
        [f"{energy['measured_nodes']} of {energy['nodes']} nodes"]
        if energy and energy["measured_nodes"] < energy["nodes"]
        else []
    )
    if energy and energy["measured_devices"] < energy["devices"]:
        parts.append(f"{energy['measured_devices']} of {energy['devices']} devices")
    if missing:
        parts.append(f"without {missing} of {len(run.launches)} launches")
    by = " ".join(energy.get("sources", []))
    return text(joules) + (f" by {by}" if by else "") + "".join(f", {part}" for part in parts)


def a_token(run):
    """Energy of the run over the tokens of its steps, each step counted once."""
    found, tokens = of(run), run.positions("tokens")[-1] if run.steps else 0
    return text(found[0] / tokens) if found and tokens else ""
