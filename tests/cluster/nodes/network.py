"""The network of a cluster: a switch in a network namespace of its own, and for each node a namespace and a link to it.

The names of the namespaces hold the cluster's tag, so that clusters do not meet. Addresses are the same in each.
"""

import json
import re
from dataclasses import dataclass

from .shell import ClusterError, call

PREFIX = "10.77.0."
BURST, BACKLOG = "256k", "16m"  # of a link with a set rate
LOSS_TABLE = """table ip loss {{
  chain received {{
    type filter hook input priority 0
    iif eth0 numgen random mod 1000 < {thousandths} drop
  }}
}}
"""


@dataclass(frozen=True)
class Traffic:
    """The traffic of a node's interface since its boot."""

    sent_bytes: int
    received_bytes: int
    sent_packets: int


def address(number):
    return f"{PREFIX}{number}"


class Network:
    def __init__(self, tag):
        self.prefix = f"kzero-{tag}-"
        self.switch = f"{self.prefix}switch"

    def namespace(self, node):
        return f"{self.prefix}{node}"

    def inside(self, node):
        """The start of a command line that runs in the node's network and in this machine's file system."""
        return ["nsenter", f"--net=/run/netns/{self.namespace(node)}"]

    def create(self, nodes):
        """nodes: names, whose place in the list gives the address."""
        call("ip", "netns", "add", self.switch)
        call("ip", "-n", self.switch, "link", "add", "br0", "type", "bridge")
        call("ip", "-n", self.switch, "link", "set", "br0", "addrgenmode", "none", "up")
        for number, node in enumerate(nodes, 1):
            space = self.namespace(node)
            call("ip", "netns", "add", space)
            call("ip", "-n", self.switch, "link", "add", node, "type", "veth", "peer", "name", "eth0", "netns", space)
            call("ip", "-n", self.switch, "link", "set", node, "master", "br0")
            call("ip", "-n", space, "addr", "add", f"{address(number)}/24", "dev", "eth0")
            call("ip", "-n", space, "link", "set", "lo", "up")
            for where, device in ((self.switch, node), (space, "eth0")):
                call("ip", "-n", where, "link", "set", device, "addrgenmode", "none", "up")  # nobody speaks IPv6 unasked

    def spaces(self):
        """The namespaces of this cluster that exist."""
        names = [line.split()[0] for line in call("ip", "netns", "list").splitlines() if line.strip()]
        return [name for name in names if name.startswith(self.prefix)]

    def remove(self):
        for space in self.spaces():
            call("ip", "netns", "del", space)

    def set_link(self, node, state):
        """state: up or down."""
        call("ip", "-n", self.switch, "link", "set", node, state)

    def shape(self, node, rate=None, delay=None, loss=None):
        """Sets a link: rate such as 200mbit and delay such as 1ms for both directions, loss such as 5% of what the node
        receives. Without a value there is no limit, delay or loss."""
        for space, device in ((self.namespace(node), "eth0"), (self.switch, node)):
            call("tc", "-n", space, "qdisc", "del", "dev", device, "root", check=False)
            if delay:
                self._delay(space, device, delay, rate)
            elif rate:
                call(
                    "tc",
                    "-n",
                    space,
                    "qdisc",
                    "add",
                    "dev",
                    device,
                    "root",
                    "tbf",
                    "rate",
                    rate,
                    "burst",
                    BURST,
                    "limit",
                    BACKLOG,
                )
        self._lose(node, loss)

    def _delay(self, space, device, delay, rate):
        try:
            call(
                "tc",
                "-n",
                space,
                "qdisc",
                "add",
                "dev",
                device,
                "root",
                "netem",
                "limit",
                "20000",
                "delay",
                delay,
                *(["rate", rate] if rate else []),
            )
        except ClusterError as problem:
            raise ClusterError(f"no delay can be set, which needs the kernel's module sch_netem: {problem}") from problem

    def _lose(self, node, loss):
        nft = [*self.inside(node), "nft"]
        if "table ip loss" in call(*nft, "list", "tables"):
            call(*nft, "delete", "table", "ip", "loss")
        if loss is None:
            return
        percent = re.fullmatch(r"(\d+(?:\.\d+)?)%", loss)
        if not percent or float(percent[1]) > 100:
            raise ClusterError(f"loss {loss!r}: expected a percentage such as 5%")
        call(*nft, "-f", "-", input=LOSS_TABLE.format(thousandths=round(float(percent[1]) * 10)))

    def traffic(self, node):
        (shown,) = json.loads(call("ip", "-n", self.namespace(node), "-s", "-j", "link", "show", "eth0"))
        counted = shown["stats64"]
        return Traffic(counted["tx"]["bytes"], counted["rx"]["bytes"], counted["tx"]["packets"])
