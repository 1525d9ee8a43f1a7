"""Import every module of the installed package: run it where nothing but the declared dependencies is installed."""

import importlib
import pkgutil

import manyheads

names = [info.name for info in pkgutil.walk_packages(manyheads.__path__, "manyheads.")]
for name in names:
    importlib.import_module(name)
print(f"{len(names)} modules of manyheads {manyheads.__version__} import")
