"""One module a chapter: a ``Config`` goes in, a ``Result`` of plain numbers comes out, and nothing is drawn.

Every experiment offers ``run(config) -> Result``. One with recordings also offers ``RECORDINGS`` (name to config),
``shards(config)``, ``run_shard(config, shard)``, ``combine(config, parts)`` and ``first_losses(config, steps)``;
:mod:`manyheads.experiments.recorder` does the rest.
"""

PROFILES = ("quick", "gpu", "full")
