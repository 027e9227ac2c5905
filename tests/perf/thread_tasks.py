#!/usr/bin/env python3
"""How busy the threads of a rank are in a step in fp32, by the number of tasks that kernels divide among them: an estimate.

    python3 thread_tasks.py

Products are divided into tiles as in src/tensor/onednn_sgemm.cpp, attention into heads of sequences. All other kernels count as
divided evenly, and what is outside of them as serial. The rate of memory, which threads share, is not counted, nor is the start
of a kernel, nor memory of other NUMA domains. The shares of a step are those of docs/results.md.
"""

from dataclasses import dataclass

THREADS = (2, 4, 8, 16)
SERIAL = 0.008  # of a step on one thread: profile.py's "rest"


@dataclass
class Case:
    hidden: int
    layers: int
    vocab: int
    sequence: int
    heads: int
    batch: int
    chunk: int  # rows of logits at once
    products: float  # shares of a step
    attention: float


CASES = {
    "tiny": Case(256, 4, 256, 256, 8, 8, 1024, 0.709, 0.157),
    "small30m": Case(512, 8, 8192, 512, 8, 4, 512, 0.803, 0.106),
    "gpt2-124m": Case(768, 12, 50257, 1024, 12, 1, 256, 0.818, 0.099),
}


def ceil_div(a, b):
    return -(-a // b)


def parts(size, largest, step):
    """Into how many tiles a side is divided."""
    part = ceil_div(ceil_div(size, ceil_div(size, largest)), step) * step
    return ceil_div(size, part)


def tiles(rows, columns):
    return parts(rows, 96, 6) * parts(columns, 512, 16)


def busy(tasks, threads):
    return tasks / (ceil_div(tasks, threads) * threads)


def products(case):
    """(rows, columns, terms, how many a step), forward and backward."""
    n, d, chunks = case.batch * case.sequence, case.hidden, case.batch * case.sequence // case.chunk
    layers = [(3 * d, d, n, case.layers), (d, d, n, case.layers), (4 * d, d, n, case.layers), (d, 4 * d, n, case.layers)]
    for out, terms, rows, times in [*layers, (case.vocab, d, case.chunk, chunks)]:
        yield from [(rows, out, terms, times), (rows, terms, out, times), (out, terms, rows, times)]


def efficiency(case, threads):
    """The rate of a step over that of one thread times the number of threads."""
    work = time = 0
    for m, n, k, times in products(case):
        work += m * n * k * times
        time += m * n * k * times / busy(tiles(m, n), threads)
    attention = case.attention / busy(case.batch * case.heads, threads)
    even = 1 - case.products - case.attention - SERIAL
    return 1 / (case.products * time / work + attention + even + SERIAL * threads)


def main():
    print("| threads | " + " | ".join(CASES) + " |\n|---|" + "---|" * len(CASES))
    for threads in THREADS:
        print(f"| {threads} | " + " | ".join(f"{efficiency(case, threads):.2f}" for case in CASES.values()) + " |")


if __name__ == "__main__":
    main()
