"""Executable approximation theory of attention: what the chapters of *How Many Heads?* share.

The rooms, from the ground up: ``models`` (torch modules), ``theory`` (statements as code), ``experiments`` (one
module a chapter) and ``reporting`` (figures, explorers, claims, recordings).
"""

__version__ = "0.1.0"
