"""Parameters of papermill for notebooks of this kernel: `papermill -p nodes 5` becomes the line `%nodes 5`.

papermill finds translators only when somebody registers them, and looks for engines by entry points; so this comes in
as an engine, which is papermill's usual one.
"""

import re

from papermill.engines import NBClientEngine as Engine
from papermill.exceptions import PapermillException
from papermill.models import Parameter
from papermill.translators import Translator, papermill_translators

__all__ = ["Engine"]

CONTROL = re.compile(r"%(\w+)\s+(.+)")


class Controls(Translator):
    """A parameter is a control of the lab, its value the control's argument."""

    @classmethod
    def translate(cls, val):
        if isinstance(val, bool) or not isinstance(val, (int, float, str)) or "\n" in str(val):
            raise PapermillException(f"a parameter of this kernel is a number or one line of text, not {val!r}")
        return str(val)

    @classmethod
    def comment(cls, cmt_str):
        return f"# {cmt_str}"

    @classmethod
    def assign(cls, name, str_val):
        return f"%{name} {str_val}"

    @classmethod
    def inspect(cls, parameters_cell):
        lines = map(str.strip, parameters_cell["source"].splitlines())
        found = filter(None, map(CONTROL.fullmatch, lines))
        return [Parameter(line[1], "None", line[2], "") for line in found]


papermill_translators.register("kubernetes", Controls)
