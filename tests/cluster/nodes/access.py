"""Keys and settings of the nodes' ssh, which launchers reach other nodes with."""

from .shell import call

SSH_CONFIG = """Host *
  User root
  IdentityFile {keys}/user
  IdentitiesOnly yes
  UserKnownHostsFile {keys}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  LogLevel ERROR
  ConnectTimeout 10
  SendEnv {marker}
"""
SSHD_CONFIG = """Port 22
HostKey {keys}/host
AuthorizedKeysFile {keys}/authorized
PidFile /run/sshd.pid
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
StrictModes no
MaxStartups 100
AcceptEnv {marker}
"""


def write_access(folder, nodes, marker):
    """Writes keys/, ssh_config, sshd_config and the command `ssh` into the folder. marker: a variable that ssh passes on."""
    keys = folder / "keys"
    keys.mkdir()
    for name in ("host", "user"):
        call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "kzero", "-f", keys / name)
    (keys / "authorized").write_text((keys / "user.pub").read_text())
    (keys / "known_hosts").write_text(f"{','.join(nodes)} {(keys / 'host.pub').read_text()}")
    (folder / "ssh_config").write_text(SSH_CONFIG.format(keys=keys, marker=marker))
    (folder / "sshd_config").write_text(SSHD_CONFIG.format(keys=keys, marker=marker))
    command = folder / "ssh"
    command.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {folder}/ssh_config "$@"\n')
    command.chmod(0o755)
