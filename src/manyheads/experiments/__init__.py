"""The book's measurements, one module each; nothing is drawn here.

A module names its axes in a ``Config`` and measures one point of them; :mod:`~manyheads.experiments.sweep` runs the
whole, :mod:`~manyheads.experiments.recorder` records it, and both give a :class:`~manyheads.experiments.grid.Grid`.

>>> from manyheads.experiments import kth_largest, sweep
>>> config = kth_largest.Config.profile("quick", n_seeds=2, n_steps=2, eval_size=8)
>>> sweep.run(kth_largest, config).at(k=1)["nmse"].shape
(1, 1, 2)
"""
