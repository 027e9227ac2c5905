"""Stand-ins for the commands of PBS and Flux, with the rules of theirs that matter to a job script. Each keeps its jobs in the folder that
STAND_IN names; jobs wait until run_next() runs them, one after the other, as a cluster would that has room for one.

    python3 batch_stand_ins.py qsub|qstat|flux ARGUMENT...
"""

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

STATE = Path(os.environ.get("STAND_IN", "."))
WALL_TIME = 3600  # seconds of every job


def jobs():
    return sorted(STATE.glob("job_*.json"), key=lambda path: int(path.stem[4:]))


def accept(job):
    """Keeps a job; prints nothing. Refused where the site says so."""
    if (STATE / "refuse").exists():
        sys.exit("stand-in: submission from here is not allowed")
    number = len(jobs()) + 1
    (STATE / f"job_{number}.json").write_text(json.dumps({**job, "state": "waiting"}))
    return number


def hosts(up=False):
    """Names of the nodes: those in the file hosts, else this one. A file down_NAME takes one away."""
    file = STATE / "hosts"
    names = file.read_text().split() if file.exists() else [socket.gethostname()]
    return [name for name in names if not up or not (STATE / f"down_{name}").exists()]


def qsub(arguments):
    """Reads a script from standard input. The job begins in the home folder with nothing of this environment but PATH."""
    options = list(arguments)
    script = sys.stdin.read()
    if any(not word.startswith("-") and not options[i - 1].startswith("-") for i, word in enumerate(options)):
        sys.exit("stand-in: a script takes no arguments")
    directives = [shlex.split(line[5:]) for line in script.splitlines() if line.startswith("#PBS ")]
    number = accept({"kind": "pbs", "script": script, "options": options, "directives": directives, "PATH": os.environ["PATH"]})
    print(f"{number}.stand-in")


def qstat(arguments):
    option, job = arguments
    assert option == "-f"
    found = json.loads((STATE / f"job_{job.split('.')[0]}.json").read_text())
    print(
        f"Job Id: {job}\n    Job_Name = kzero\n    resources_used.walltime = 00:00:00\n    job_state = R\n"
        f"    Resource_List.walltime = 01:00:00\n    stime = {time.ctime(found['began'])}\n    etime = {time.ctime(0)}"
    )


def flux(arguments):
    """batch copies the script and the environment; within a job only --parent reaches where jobs are submitted."""
    parent = arguments[0] == "--parent"
    command, *rest = arguments[parent:]
    inside = "STAND_IN_INSTANCE" in os.environ
    if command == "batch":
        if inside and not parent:
            sys.exit("stand-in: this would run within the job's own instance and end with it")
        options = [word for word in rest if word.startswith("-")]
        script, *words = rest[len(options) :]
        lines = Path(script).read_text().splitlines()
        directives = [line[8:].strip() for line in lines if line.startswith("# flux:")]
        last = max(i for i, line in enumerate(lines) if line.startswith("# flux:"))
        if any(line and not line.startswith("#") for line in lines[:last]):
            sys.exit("stand-in: directives come before all commands")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("FLUX_", "STAND_IN_"))}
        number = accept(
            {
                "kind": "flux",
                "script": Path(script).read_text(),
                "arguments": words,
                "options": options,
                "folder": os.getcwd(),
                "directives": directives,
                "environment": environment,
            }
        )
        print(f"ƒ{number}")
    elif command == "run":
        assert inside and not parent
        split = next(i for i, word in enumerate(rest) if not word.startswith("-"))
        given = dict(word[2:].split("=", 1) for word in rest[:split])
        wanted = given["requires"].removeprefix("host:").split(",") if "requires" in given else hosts()
        if int(given["nodes"]) > len(set(wanted) & set(hosts(up=True))):
            time.sleep(1000)  # it waits for a node that is down
        with (STATE / "runs").open("a") as file:
            file.write(" ".join(rest[:split]) + "\n")
        launcher = shlex.split(os.environ["KZERO_LAUNCHER"])
        os.execvp(launcher[0], [*launcher, given["ntasks"], *rest[split:]])
    elif [command, *rest] == ["job", "timeleft"]:
        print(WALL_TIME if inside else sys.exit(1))
    elif command == "resource":
        print(",".join(hosts(up=rest[-1] == "up")))
    elif [command, *rest] == ["hostlist", "-e", "-"]:
        print(sys.stdin.read().strip().replace(",", " "))
    else:
        sys.exit(f"stand-in: unknown: {arguments}")


def run_next(timeout):
    """Runs the first waiting job to its end: (number, exit code, what it printed); none if no job waits."""
    for path in jobs():
        job = json.loads(path.read_text())
        if job["state"] != "waiting":
            continue
        number, begun = int(path.stem[4:]), time.time()
        path.write_text(json.dumps({**job, "state": "running", "began": begun}))
        copy = STATE / f"copy_of_{number}"
        copy.write_text(job["script"])
        home = STATE / "home"
        home.mkdir(exist_ok=True)
        if job["kind"] == "pbs":
            nodes = STATE / "nodes"
            nodes.write_text(
                "".join(f"{name}\n" for name in hosts()) * (1 if (STATE / "hosts").exists() else 2)
            )  # MPICH reads it too
            command, folder = ["bash", str(copy)], home
            environment = {
                "PATH": job["PATH"],
                "HOME": str(home),
                "PBS_JOBID": f"{number}.stand-in",
                "PBS_NODEFILE": str(nodes),
                "OMP_NUM_THREADS": "1",
                "STAND_IN": str(STATE),
            }
            for name in ("LD_PRELOAD", "KZERO_MPIEXEC"):  # the test's own
                environment.update({name: os.environ[name]} if name in os.environ else {})
        else:
            command, folder = ["bash", str(copy), *job["arguments"]], job["folder"]
            environment = {**job["environment"], "FLUX_ENCLOSING_ID": f"ƒ{number}", "STAND_IN_INSTANCE": "1"}
        done = subprocess.run(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout
        )
        path.write_text(json.dumps({**json.loads(path.read_text()), "state": "done"}))
        return number, done.returncode, done.stdout
    return None


if __name__ == "__main__":
    {"qsub": qsub, "qstat": qstat, "flux": flux}[sys.argv[1]](sys.argv[2:])
