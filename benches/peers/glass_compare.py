"""The rig's compare.py, whose workers draw glass too.

    VENV/bin/python benches/peers/glass_compare.py RIG [compare.py options]

RIG is the folder of compare.py, which runs as it is; glass_worker.py stands before its workers.
"""

import os
import sys

from rig import run_with


def main():
    rig = os.path.abspath(sys.argv.pop(1))
    sys.path.insert(0, rig)
    worker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "glass_worker.py")

    def put_in(names):
        for peer, (script, extra) in names["SCRIPT"].items():
            names["SCRIPT"][peer] = (worker, dict(extra, rig=rig, script=script))

    run_with(os.path.join(rig, "compare.py"), "main()", put_in)


main()
