"""Connections of one user in a process of its own, which is another user if this one is root.

Run as a program: PATH COUNT UID MODE, with the text to send on standard input. It prints how many connections it has, and ends when
standard input ends or after MODE's work. `holds`: sends the text over and over as far as it is taken, and reads nothing. `reads`: sends it
and reads the replies, again and again.
"""

import os
import pwd
import resource
import select
import socket
import subprocess
import sys

NOBODY = pwd.getpwnam("nobody").pw_uid


class Crowd:
    def __init__(self, place, count, text, mode="holds", uid=None):
        self.uid = (NOBODY if uid is None else uid) if os.geteuid() == 0 else os.geteuid()
        self.process = subprocess.Popen(
            [sys.executable, __file__, place.socket, str(count), str(self.uid), mode, str(len(text))], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        self.process.stdin.write(text)
        self.process.stdin.flush()
        self.count = int(self.process.stdout.readline())

    def stop(self):
        self.process.kill()
        self.process.wait()


def enough_descriptors(count):
    """Whether a process of this user may have so many connections."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= count + 100


def _main(path, count, uid, mode, length):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    text = sys.stdin.buffer.read(int(length))
    connections, rests = {}, {}
    poll = select.epoll()
    for _ in range(int(count)):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
        except OSError:
            continue
        connection.setblocking(False)
        connections[connection.fileno()] = connection
        rests[connection.fileno()] = text
        poll.register(connection, select.EPOLLOUT | (select.EPOLLIN if mode == "reads" else 0))
    print(len(connections), flush=True)
    while connections:
        for descriptor, events in poll.poll(1):
            connection = connections[descriptor]
            try:
                if events & select.EPOLLIN:
                    if not connection.recv(1 << 16):
                        raise ConnectionError
                if events & select.EPOLLOUT:
                    rests[descriptor] = rests[descriptor][connection.send(rests[descriptor]):] or text
            except BlockingIOError:
                pass
            except OSError:
                poll.unregister(connection)
                connections.pop(descriptor).close()
        if os.getppid() == 1:
            return


if __name__ == "__main__":
    path, count, uid, mode, length = sys.argv[1:]
    _main(path, count, int(uid), mode, length)
