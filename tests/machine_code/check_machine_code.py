"""Checks what nvcc made of the kernels: registers, stack, how their arguments travel, which instructions they have.

    python3 check_machine_code.py CUOBJDUMP BOUNDS LIBRARY... [--table]
    python3 tests/machine_code/check_machine_code.py .deps/disassembler/nvidia/cu13/bin/cuobjdump tests/machine_code/bounds.txt build/cuda/kzero

It is run by hand, after a change of a kernel. It needs no GPU. `bash cmake/debian.sh cuda` installs cuobjdump.

BOUNDS: a line "kernel | registers | stack | instructions" for each kind of kernel: a regular expression that is searched in
the kernel's name, the most registers of a thread, the most bytes of its stack (spills, arrays that are indexed), and the
instructions that it must have ("HMMA"), must not have ("!LD") or may have so many of ("LD<=40"). The first line that matches
a kernel counts. Every kernel needs a line, and every line a kernel. Kokkos passes a functor above 4 KiB through constant
memory, where one launch waits for the one before: no kernel may.
--table: prints what there is, with instruction counts.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

WATCHED = ("HMMA", "LDSM", "LD", "LDG", "STG", "LDS", "STS", "LDL", "STL", "BAR", "SHFL")


@dataclass
class Kernel:
    name: str
    launch: str  # "local_memory", "constant_memory", "global_memory"; empty: not by Kokkos
    registers: int
    stack: int
    instructions: Counter = field(default_factory=Counter)


@dataclass
class Bound:
    line: int
    pattern: re.Pattern
    registers: int
    stack: int
    instructions: list
    is_used: bool = False


def run(*command, text=None):
    done = subprocess.run(command, input=text, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


def identifiers(mangled):
    """The identifiers of a mangled name. Each follows its length. Back references and literals are left out."""
    token, position, found = re.compile(r"[ST][0-9A-Z]*_|L[a-z]n?\d+E|(\d+)|."), 0, []
    while match := token.match(mangled, position):
        position = match.end() + int(match[1] or 0)
        if match[1]:
            found.append(mangled[match.end() : position])
    return [name for name in found if not name.startswith("_")]


def readable(names):
    """Demangled names; c++filt gives up on lambdas in templates, of which the identifiers are left."""
    plain = run("c++filt", "--no-recurse-limit", text="\n".join(names)).splitlines()
    internal = re.compile(r"_INTERNAL_\w+?::")
    return [
        " ".join(identifiers(name)) if plain_name == name else internal.sub("", plain_name)
        for name, plain_name in zip(names, plain)
    ]


def short(name):
    """The part of a kernel's name that a reader knows it by."""
    if " " in name and "::" not in name:
        return " ".join(name.split("kzero kernels ")[-1].split("kzero optim ")[-1].split(" Cuda")[0].split()[:6])
    found = re.search(r"kzero::(?:\w+::|\(anonymous namespace\)::)*(?=\w+[<(,])", name)
    if not found:
        return "Kokkos: " + " ".join(dict.fromkeys(re.findall(r"View\w+|\w+Tag", name)))
    depth, end = 0, found.end()
    while depth > 0 or name[end] not in "(,{> ":
        depth += {"<": 1, ">": -1}.get(name[end], 0)
        end += 1
    return re.sub(r"kzero::|kernels::|\(anonymous namespace\)::", "", name[found.end() : end])


def kernels_of(resources, code):
    """{mangled name: Kernel}, from cuobjdump's texts of --dump-resource-usage and -sass."""
    usage = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+)", resources)
    kernels = {}
    for (mangled, registers, stack), name in zip(usage, readable([u[0] for u in usage])):
        launch = re.search(r"cuda_parallel_launch_(local|constant|global)_memory", mangled)
        kernels[mangled] = Kernel(name, launch[0][len("cuda_parallel_launch_") :] if launch else "", int(registers), int(stack))
    counts = None
    for line in code.splitlines():
        if function := re.match(r"\s*Function : (\S+)", line):
            kernel = kernels.get(function[1])
            counts = kernel.instructions if kernel else Counter()
        elif instruction := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][A-Z0-9]*)", line):
            counts[instruction[1]] += 1
    return kernels


def read_bounds(path):
    bounds, problems = [], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [part.strip() for part in line.split(" | ")]
        if len(fields) not in (3, 4) or not (fields[1].isdigit() and fields[2].isdigit()):
            problems.append(f"{path.name}:{number}: not \"kernel | registers | stack | instructions\"")
            continue
        bounds.append(
            Bound(number, re.compile(fields[0]), int(fields[1]), int(fields[2]), fields[3].split() if len(fields) == 4 else [])
        )
    return bounds, problems


def breaches(kernel, bound):
    if kernel.registers > bound.registers:
        yield f"{kernel.registers} registers, at most {bound.registers}"
    if kernel.stack > bound.stack:
        yield f"{kernel.stack} bytes of stack, at most {bound.stack}"
    for rule in bound.instructions:
        name, _, most = rule.partition("<=")
        count = kernel.instructions[name.lstrip("!")]
        if most and count > int(most):
            yield f"{count} {name}, at most {most}"
        elif rule.startswith("!") and count:
            yield f"{count} {name[1:]}, none allowed"
        elif not most and not rule.startswith("!") and not count:
            yield f"no {name}"


def check(kernels, bounds):
    problems = []
    for kernel in kernels.values():
        bound = next((b for b in bounds if b.pattern.search(kernel.name)), None)
        if kernel.launch == "constant_memory":
            problems.append(f"{short(kernel.name)}: its functor travels through constant memory")
        if bound is None:
            problems.append(
                f"{short(kernel.name)}: no line of the bounds is for it: {kernel.registers} registers, {kernel.stack} bytes"
            )
            continue
        bound.is_used = True
        problems += [f"{short(kernel.name)}: {breach} (line {bound.line})" for breach in breaches(kernel, bound)]
    problems += [f"line {b.line}: no kernel is {b.pattern.pattern}" for b in bounds if not b.is_used]
    return problems


def print_table(kernels):
    print(f"{'registers':>9} {'stack':>5} " + " ".join(f"{name:>5}" for name in ("all", *WATCHED)) + "  kernel")
    for kernel in sorted(kernels.values(), key=lambda k: short(k.name)):
        counts = [sum(kernel.instructions.values()), *(kernel.instructions[name] for name in WATCHED)]
        print(
            f"{kernel.registers:9} {kernel.stack:5} " + " ".join(f"{count:5}" for count in counts) + f"  {short(kernel.name)}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cuobjdump")
    parser.add_argument("bounds", type=Path)
    parser.add_argument("libraries", nargs="+")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    kernels = {}
    for library in arguments.libraries:
        kernels |= kernels_of(
            run(arguments.cuobjdump, "--dump-resource-usage", library), run(arguments.cuobjdump, "-sass", library)
        )
    if not kernels:
        sys.exit(f"no kernels in {', '.join(arguments.libraries)}")
    if arguments.table:
        print_table(kernels)
    bounds, problems = read_bounds(arguments.bounds)
    problems += check(kernels, bounds)
    print("\n".join(problems) if problems else f"{len(kernels)} kernels are within their bounds")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
