"""Checks that compilers vectorize the optimizers' rules on hosts. A rule that is not vectorized takes up to ten times as long.

python3 check_vectors.py OBJDUMP KZERO
"""

import re
import subprocess
import sys

RULES = ("AdamWStep", "AdEMAMixRule", "LionRule", "MuonRate")
TYPES = ("float", "kzero::bf16")
# Multiplications in registers of 32 or 64 bytes.
PRODUCT = re.compile(r"\bv(?:mul|fn?m(?:add|sub)\d+)ps\b.*%[yz]mm")


def functions(objdump, program):
    """Pairs of a function's name and its instructions."""
    command = [objdump, "--disassemble", "--demangle", "--no-show-raw-insn", program]
    text = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    for part in text.split("\n\n"):
        name, _, instructions = part.strip().partition("\n")
        yield name, instructions


def main():
    products = {(rule, dtype): 0 for rule in RULES for dtype in TYPES}
    for name, instructions in functions(*sys.argv[1:3]):
        for rule, dtype in products:
            if re.search(rf"<{dtype}, [^<>]*\b{rule}\b", name):
                products[rule, dtype] += len(PRODUCT.findall(instructions))
    for (rule, dtype), count in products.items():
        print(f"{rule} {dtype}: {count} products of vectors")
    sys.exit(0 if all(products.values()) else "a rule without products of vectors is not vectorized")


if __name__ == "__main__":
    main()
