"""Operators, one file each, found by listing this folder."""

from cvcli.ops._grammar import load_chain, parse_chain, suits, value_tip, with_flags
from cvcli.ops._operator import Operator
from cvcli.ops._readers import flag_value
from cvcli.ops._registry import meant_by, names, operator_named, operators

__all__ = [
    "Operator",
    "flag_value",
    "load_chain",
    "meant_by",
    "names",
    "operator_named",
    "operators",
    "parse_chain",
    "suits",
    "value_tip",
    "with_flags",
]
