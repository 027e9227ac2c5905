#!/usr/bin/env python3
"""Puts defects into the sources that call CUDA and NCCL, one at a time, and shows which tests of tests/doubles fail.

  python3 tests/doubles/seeded_defects.py [BUILD] [NUMBER...]

BUILD is a configured build folder (build/release). The sources are changed where they lie and put back; nothing else may
build meanwhile. Prints the table of docs/devices.md; the exit code says whether every defect was found.
Run by hand after a change to the stand-ins: each defect compiles a source or two and links.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NCCL = "src/comm/nccl_communicator.cpp"
EVENT = "src/runtime/event_cuda.cpp"

# What it is, file, text, replacement, program, ranks
DEFECTS = [
    ("the order of NCCL's launches is not asked for", NCCL,
     'setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);', "", "nccl_streams", 2),
    ("the watching thread does not choose the device", NCCL,
     "  runtime::use_device();\n", "", "nccl_streams", 2),
    ("the worker's thread does not choose the device", "src/comm/worker.cpp",
     "  runtime::use_device();\n", "", "nccl_streams", 2),
    ("a collective does not wait for the work before it", NCCL,
     "lane.ready.order(stream, lane.stream);", "(void)stream;", "nccl_streams", 2),
    ("that wait is on the wrong stream", NCCL,
     "lane.ready.order(stream, lane.stream);", "lane.ready.order(lane.stream, stream);", "nccl_streams", 2),
    ("work after a collective does not wait for it", NCCL,
     "flight->arrived.wait(stream);", "(void)stream;", "nccl_streams", 2),
    ("the end of a collective is recorded on the caller's stream", NCCL,
     "flight.arrived.record(lane.stream);", "flight.arrived.record(stream);", "nccl_streams", 2),
    ("collectives under way are forgotten", NCCL,
     "while (!lane.flights.empty() && has_arrived(lane.flights.front())) {", "while (!lane.flights.empty()) {",
     "nccl_streams", 2),
    ("an all-gather's place is the rank's own", NCCL,
     "ncclAllGather(mine.data, receive[0].data,", "ncclAllGather(mine.data, receive[rank()].data,", "nccl_streams", 2),
    ("an all-gather counts bytes", NCCL,
     "receive[0].data, static_cast<std::size_t>(mine.elements)", "receive[0].data, static_cast<std::size_t>(mine.bytes())",
     "nccl_streams", 2),
    ("a send counts more than its receive", NCCL,
     "static_cast<std::size_t>(sent), type_of", "static_cast<std::size_t>(sent - 1), type_of", "nccl_streams", 2),
    ("messages come from the wrong rank", NCCL,
     "from = (rank() - step + size()) % size();", "from = (rank() + step) % size();", "nccl_streams", 3),
    ("a group has no end", NCCL,
     'check(ncclGroupEnd(), "ncclGroupEnd", group_.name());', "", "nccl_streams", 2),
    ("a stream is destroyed before its use", NCCL,
     "runtime::stream_of(lane.stream);\n    check(ncclGroupStart", "runtime::stream_of(((void)lane, runtime::make_stream()));\n    check(ncclGroupStart",
     "nccl_streams", 2),
    ("a rank that throws alone waits for the others", NCCL,
     "!failed_ && std::uncaught_exceptions() == exceptions_;", "!failed_;", "nccl_streams", 2),
    ("an end with collectives under way waits", NCCL,
     "idle ? ncclCommDestroy(lane.handle) : ncclCommAbort(lane.handle);", "(void)idle;\n    ncclCommDestroy(lane.handle);",
     "nccl_streams", 2),
    ("communicators are not ended", NCCL,
     "idle ? ncclCommDestroy(lane.handle) : ncclCommAbort(lane.handle);", "(void)idle;", "nccl_streams", 2),
    ("bf16 is sent as fp16", NCCL, "return ncclBfloat16;", "return ncclFloat16;", "nccl", 2),
    ("ranks may share a GPU", NCCL, "  require_own_devices(group);\n", "  if (size() == 0) require_own_devices(group);\n", "nccl", 2),
    ("NCCL's errors are not looked for", NCCL,
     "(status == ncclSuccess || status == ncclInProgress))", "true)", "nccl", 2),
    ("failed launches are not read", EVENT, "  check_launches();\n  check(cudaEventRecord", "  check(cudaEventRecord",
     "event_cuda", 1),
    ("a question hides a failed launch", EVENT, "  check_launches();\n  const cudaError_t", "  const cudaError_t",
     "event_cuda", 1),
    ("the answer \"not ready\" stays as an error", EVENT, "    cudaGetLastError();", "    ", "event_cuda", 1),
    ("an event that is waited for was not recorded", EVENT, "  handle_->recorded = true;\n", "", "event_cuda", 1),
    ("events are not destroyed", EVENT, "~Handle() { cudaEventDestroy(event); }", "~Handle() {}", "event_cuda", 1),
    ("a new stream is the default one", "src/runtime/execution.cpp",
     "return Kokkos::Experimental::partition_space(Execution(), 1)[0];", "return {};", "event_cuda", 1),
    ("the process's device is the node's first", "src/runtime/device_cuda.cpp",
     "return Execution().cuda_device();", "return 0;", "event_cuda", 1),
    ("a chosen device is not set", EVENT, 'check(cudaSetDevice(device_number()), "cudaSetDevice");', "", "event_cuda", 1),
]


def run(command, timeout):
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return -1, ""


def found_by(build, program, ranks):
    """Says which tests fail with what is in the tree now."""
    code, text = run(["cmake", "--build", build, "--target", "test_" + program], 900)
    if code != 0:
        return "does not compile\n" + text
    code, text = run(["ctest", "--test-dir", build, "--output-on-failure", "-R", f"^{program}_np{ranks}$"], 400)
    if code < 0:
        return "a test that hangs"
    if code == 0:
        return None
    names = sorted(set(re.findall(r"\[  FAILED  \] (\w+\.\w+)", text)))
    ending = re.findall(r"(?:streams|events|communicators) left", text)
    return ", ".join(names or sorted(set(ending)) or ["the program's end"])


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build/release"
    chosen = [int(number) for number in sys.argv[2:]] or range(1, len(DEFECTS) + 1)
    missed = 0
    print("| | defect | in | found by |\n|---|---|---|---|", flush=True)
    for number in chosen:
        what, name, text, replacement, program, ranks = DEFECTS[number - 1]
        path = ROOT / name
        original = path.read_text()
        assert original.count(text) == 1, f"{name} has {original.count(text)} times: {text}"
        try:
            path.write_text(original.replace(text, replacement))
            found = found_by(build, program, ranks)
        finally:
            path.write_text(original)
        missed += found is None or found.startswith("does not compile")
        print(f"| {number} | {what} | `{name}` | {found or '**nothing**'} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
