"""Runs a command on a terminal of its own, which answers what it is asked: terminal.py ANSWER
COMMAND... Prints what the command wrote there; escapes stay as they are."""
import os
import pty
import select
import sys
import time

QUESTION = b"\x1b[c"
WITHIN_SECS = 120

answer = sys.argv[1].encode().decode("unicode_escape").encode("latin-1")
process, terminal = pty.fork()
if process == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
written, answered = b"", False
end = time.monotonic() + WITHIN_SECS
while time.monotonic() < end:
    if terminal not in select.select([terminal], [], [], 1)[0]:
        continue
    try:
        piece = os.read(terminal, 65536)
    except OSError:
        break
    if not piece:
        break
    written += piece
    if not answered and QUESTION in written:
        answered = True
        os.write(terminal, answer)
_, status = os.waitpid(process, 0)
sys.stdout.buffer.write(written)
sys.exit(os.waitstatus_to_exitcode(status))
