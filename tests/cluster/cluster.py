#!/usr/bin/env python3
"""Several nodes on one machine, by network namespaces; needs root. README.md in this folder says what a node has of its own.

The cluster's state is in FOLDER, and the nodes share FOLDER/work.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from nodes.cluster import Cluster
from nodes.requirements import why_not
from nodes.shell import ClusterError

DEFAULT = os.environ.get("KZERO_CLUSTER", os.path.join(tempfile.gettempdir(), "kzero_cluster"))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder", type=Path, default=Path(DEFAULT), help="of the cluster; %(default)s, or what KZERO_CLUSTER names"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name, text, nodes=None):
        command = commands.add_parser(name, help=text, description=text)
        if nodes:
            command.add_argument(
                "nodes" if nodes in "+*" else "node", metavar="NODE", **({"nargs": nodes} if nodes in "+*" else {})
            )
        return command

    up = add("up", "start nodes, named node1, node2 and so on")
    up.add_argument("count", type=int)
    up.add_argument("--memory", type=int, metavar="BYTES", help="limit of each node's processes")
    up.add_argument(
        "--keep",
        type=Path,
        action="append",
        default=[],
        metavar="PATH",
        help="folder below /tmp, /var/tmp, /run or /dev/shm that nodes see; several times",
    )
    add("down", "end the nodes and remove all traces of them, but not FOLDER/work")
    run = add("run", "run a program on a node, in FOLDER/work", "1")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="PROGRAM ...")
    add("kill", "end all processes of nodes at once; connections are closed", "+")
    add("power-off", "cut the links of nodes, then end their processes; nothing tells other nodes", "+")
    add("boot", "start nodes again after kill or power-off", "+")
    add("cut", "cut the links of nodes", "+")
    add("restore", "restore the links of nodes", "+")
    add("freeze", "stop all processes of nodes without ending them", "+")
    add("thaw", "let frozen nodes continue", "+")
    add("slow", "limit a node's share of the processors", "1").add_argument(
        "cpus", type=float, help="cores, such as 0.1; 0: no limit"
    )
    link = add("link", "set the links of nodes (none given: of all); without options they are fast and lose nothing", "*")
    link.add_argument("--rate", help="in both directions, such as 200mbit")
    link.add_argument("--loss", help="of what a node receives, such as 5%%")
    link.add_argument("--delay", help="in both directions, such as 1ms; needs the kernel's module sch_netem")
    add("bytes", "print what each node has sent and received, as JSON")
    add("processes", "list what runs on nodes (none given: on all)", "*")
    return parser.parse_args()


def act(cluster, options):
    """Returns the exit code."""
    command = options.command
    if command == "up":
        if reason := why_not():
            raise ClusterError(reason)
        cluster.up(options.count, options.memory, options.keep)
    elif command == "down":
        cluster.down()
    elif not cluster.nodes:
        raise ClusterError(f"there is no cluster in {cluster.folder}")
    elif command == "run":
        return cluster.node(options.node).popen(options.words).wait()
    elif command == "slow":
        cluster.node(options.node).slow(options.cpus or None)
    elif command == "bytes":
        print(json.dumps({name: vars(traffic) for name, traffic in cluster.traffic().items()}))
    else:
        methods = {"power-off": "power_off", "cut": "cut_link", "restore": "restore_link"}
        for node in [cluster.node(name) for name in options.nodes] or cluster.nodes:
            if command == "link":
                node.set_link(options.rate, options.delay, options.loss)
            elif command == "processes":
                for pid, line in node.processes():
                    print(node, pid, line)
            else:
                getattr(node, methods.get(command, command))()
    return 0


if __name__ == "__main__":
    try:
        options = arguments()
        sys.exit(act(Cluster(options.folder), options))
    except ClusterError as problem:
        sys.exit(f"cluster.py: {problem}")
