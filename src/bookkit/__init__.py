"""How the book is executed, checked and published; ``python -m bookkit --help`` shows the commands.

Three rooms. :mod:`~bookkit.notebooks` finds the chapters, checks what they are asked to run with, runs them unless
their results are kept, makes these reproducible and counts their claims. :mod:`~bookkit.colab` packs copies that run in
Colab, :mod:`~bookkit.site` publishes the pages; both know the notebooks, not each other. :mod:`~bookkit.pipeline` puts
the steps in order, :mod:`~bookkit.cli` is the command line.
"""
