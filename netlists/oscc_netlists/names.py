"""Names in decks: what a node, an element or a file may be called.

Simulators fold case, take `gnd` for ground and run text that follows `!` or `>` as a
command. Hence a name is lower case letters, digits and underscores, begins with a
letter, is no alias of ground, and stands for one thing only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from oscc.errors import RequestError

NAME = re.compile(r"[a-z][a-z0-9_]*")
GROUND = "0"
RESERVED = frozenset({"gnd", "time", "temper", "hertz", "all"})
LONGEST = 200

_UNSAFE_COMMENT = re.compile(r"[^ -~]|[>!`\\]")


def require_name(name: str, *, what: str = "name") -> str:
    """The name itself, refused where a simulator could read something else into it.

    Raises:
        RequestError: a character outside the white list, or an alias of ground.

    Example:
        >>> require_name("n_ref")
        'n_ref'
    """
    if not NAME.fullmatch(name) or name in RESERVED or len(name) > LONGEST:
        raise RequestError(
            f"Argument `{what}` must be lower case letters, digits and underscores, "
            f"begin with a letter and be no reserved word, but is {name!r}."
        )
    return name


def require_node(name: str) -> str:
    """A node name: ground, or a safe name.

    Raises:
        RequestError: not a safe name.

    Example:
        >>> require_node("0")
        '0'
    """
    return name if name == GROUND else require_name(name, what="node")


def safe_name(word: str) -> str:
    """Nearest safe name of any text; different texts may share one.

    Example:
        >>> safe_name("Layer.0 coupling"), safe_name("gnd"), safe_name("7")
        ('layer_0_coupling', 'n_gnd', 'n_7')
    """
    name = re.sub(r"[^a-z0-9_]+", "_", word.lower()).strip("_")[: LONGEST - 8]
    if not name or not NAME.fullmatch(name) or name in RESERVED:
        name = f"n_{name}".rstrip("_")
    return name


def unique_names(words: Iterable[str]) -> dict[str, str]:
    """One safe name for each different text, in order: no two share one.

    Example:
        >>> unique_names(["Q", "q", "gnd"])
        {'Q': 'q', 'q': 'q_2', 'gnd': 'n_gnd'}
    """
    out: dict[str, str] = {}
    taken: set[str] = set()
    for word in words:
        if word in out:
            continue
        stem = name = safe_name(word)
        number = 2
        while name in taken:
            name, number = f"{stem}_{number}", number + 1
        taken.add(name)
        out[word] = name
    return out


def safe_comment(text: str) -> str:
    """Text for a comment line: one line of plain ASCII that starts no command.

    Example:
        >>> safe_comment("a" + chr(10) + ".system touch x > y")
        'a_.system touch x _ y'
    """
    return _UNSAFE_COMMENT.sub("_", text)
