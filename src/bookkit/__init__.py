"""How the book is executed, checked and published; ``python -m bookkit --help`` shows the commands.

The path of a chapter: :mod:`~bookkit.toc` finds it, :mod:`~bookkit.parameters` checks what it is asked to run with,
:mod:`~bookkit.execute` runs it unless :mod:`~bookkit.cache` has the result, :mod:`~bookkit.normalise` makes the result
reproducible, :mod:`~bookkit.verdicts` counts its claims, :mod:`~bookkit.stage` and :mod:`~bookkit.site` publish it and
:mod:`~bookkit.colab` packs a copy that runs in Colab. :mod:`~bookkit.pipeline` puts these steps in order.
"""
