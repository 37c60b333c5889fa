"""Reads command lines and paths by meaning: which programs, which words, which files, or `unknown`.

Knows: the language of sh and bash, wrappers, common file tools, git, patches, path forms.
Does not know: policy, tools of agents, whether anything is allowed.
"""

from interpose.command.matching import match_paths
from interpose.command.patches import read_patch
from interpose.command.paths import PathPattern, PathPatterns, canonical_path, same_file
from interpose.command.pattern import CommandPattern
from interpose.command.reader import CommandReader, read_command
from interpose.command.reading import Access, Answer, FileUse, Found, NotFound, Reading, SimpleCommand, Word

__all__ = [
    "Access",
    "Answer",
    "CommandPattern",
    "CommandReader",
    "FileUse",
    "Found",
    "NotFound",
    "PathPattern",
    "PathPatterns",
    "Reading",
    "SimpleCommand",
    "Word",
    "canonical_path",
    "match_paths",
    "read_command",
    "read_patch",
    "same_file",
]
