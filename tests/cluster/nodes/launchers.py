"""The words that start a program over nodes by the mpiexec of each MPI library.

KZERO_MPIEXEC names the mpiexec; without it, it is that of PATH. The variables of another library that are set here, such as
LD_LIBRARY_PATH and I_MPI_ROOT, reach the nodes.
"""

import functools
import os
import shutil
import subprocess

NAMED = os.environ.get("KZERO_MPIEXEC")
MPIEXEC = shutil.which(NAMED) if NAMED else "mpiexec"
OF_LIBRARIES = ("LD_LIBRARY_PATH", "OPAL_", "OMPI_", "PMIX_", "I_MPI_", "FI_")  # how names of variables begin


@functools.cache
def library():
    """intel, openmpi or mpich."""
    said = subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True).stdout
    return "intel" if "Intel" in said else "openmpi" if "Open" in said else "mpich"


def variables():
    """Those of the library. MPICH needs none, and gets what it always got."""
    if library() == "mpich":
        return {}
    return {name: value for name, value in os.environ.items() if name.startswith(OF_LIBRARIES)}


def words(names, ranks, ssh):
    """names: nodes; ranks: of each node; ssh: the command that reaches a node."""
    if library() == "openmpi":
        daemon = os.path.join(os.path.dirname(MPIEXEC), "orted")
        settings = [f"{name}={value}" for name, value in variables().items()]
        options = {
            "plm_rsh_agent": ssh,
            "orte_launch_agent": " ".join(["env", *settings, daemon]),
            "oob_tcp_if_include": "eth0",
            "btl_tcp_if_include": "eth0",
        }
        chosen = [word for name, value in options.items() for word in ("--mca", name, value)]
        slots = ",".join(f"{name}:{ranks}" for name in names)
        # Nodes share the machine's cores, so each would bind its ranks to the same ones.
        return [MPIEXEC, "--host", slots, "-n", ranks * len(names), "--bind-to", "none", *chosen]
    launcher = ["-launcher", "ssh", "-launcher-exec", ssh]
    if library() == "intel":
        launcher = ["-bootstrap", "ssh", "-bootstrap-exec", ssh]
    return [MPIEXEC, "-hosts", ",".join(names), "-ppn", ranks, "-n", ranks * len(names), *launcher]
