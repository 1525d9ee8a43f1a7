"""Executable approximation theory of attention: what the chapters of *How Many Heads?* share.

The rooms, from the ground up: ``models`` (torch modules), ``theory`` (statements as code), ``training`` (one loop for
everything), ``surgery`` (weights set by hand), ``tasks`` (data as functions of a named seed), ``reporting`` (figures,
explorers, claims, recordings) and ``experiments`` (the measurements, one module each). ``names``, ``files`` and
``progress`` are for everybody.
"""

__version__ = "0.1.0"
