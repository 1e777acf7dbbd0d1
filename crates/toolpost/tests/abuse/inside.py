"""Programs that are run inside of the sandbox, to try what they can do there.

Every attempt is one that would do no harm where it worked: mounts go over a folder of the case, the host name is set
to what it is, counters stop bombs.
"""

import json

PRELUDE = r'''
import ctypes, errno, json, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
said = {}

def call(name, *arguments):
    """A function of libc; raises what it fails with."""
    ctypes.set_errno(0)
    result = getattr(libc, name)(*arguments)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, errno.errorcode.get(number, str(number)))
    return result

def syscall(number, *arguments):
    return call("syscall", ctypes.c_long(number), *arguments)

def attempt(name, body):
    """Notes what came of an attempt: `worked` and what it gave, or the error's name."""
    try:
        said[name] = ["worked", repr(body())[:200]]
    except OSError as error:
        said[name] = ["refused", errno.errorcode.get(error.errno, str(error.errno))]
    except BaseException as error:
        said[name] = ["refused", type(error).__name__]

def in_child(body):
    """Runs in a process of its own, so that what it changes for itself is gone after; raises its failure."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            body()
            os.write(write, b"0")
        except OSError as error:
            os.write(write, str(error.errno or 1).encode())
        except BaseException:
            os.write(write, b"1")
        os._exit(0)
    os.close(write)
    answer = os.read(read, 20)
    os.waitpid(child, 0)
    if answer != b"0":
        raise OSError(int(answer or b"4"), "in a child")
'''

EPILOGUE = r"""
print("SAID " + json.dumps(said), flush=True)
"""


def program(body, **values):
    """The whole text of a program; `values` are its constants."""
    constants = "".join(f"{name} = {value!r}\n" for name, value in values.items())
    return PRELUDE + constants + body + EPILOGUE


def said(answer):
    """What a program noted."""
    for line in answer.text.splitlines():
        if line.startswith("SAID "):
            return json.loads(line[5:])
    raise AssertionError(f"the program did not come to its end: {answer!r}")
