"""Runs a script of the rig as it is, with one change put in before a statement."""

import ast


def run_with(path, place, put_in):
    """Runs the script from its first statement to its last. `put_in` gets its names before the
    statement that begins with `place`.
    """
    with open(path) as file:
        source = file.read()
    names = {"__name__": "__main__", "__file__": path}
    statements = ast.parse(source, path).body
    begins = [
        ast.get_source_segment(source, statement).startswith(place) for statement in statements
    ]
    if sum(begins) != 1:
        raise ValueError(
            "%s has %d statements that begin with %r instead of one: the rig has changed"
            % (path, sum(begins), place)
        )
    for statement, here in zip(statements, begins):
        if here:
            put_in(names)
        exec(compile(ast.Module([statement], []), path, "exec"), names)
