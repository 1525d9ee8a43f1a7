# Two commands matter: `make book` and `make test`. Everything runs in .venv, made from requirements.txt.
PYTHON ?= python3
PIP_ARGS ?=
VENV := .venv
COLAB := .venv-colab
RUN := $(VENV)/bin/python
unexport PYTHONPATH # another checkout's tools must not come before these
export PYTHONHASHSEED := 0

.PHONY: help check book test notebooks serve lint format bench record clean
help:
	@echo "make check      style, types and fast tests, for people at work"
	@echo "make book       execute every chapter and build the site"
	@echo "make test       run every check, the site in a browser included"
	@echo "make serve      open the built site at a local address"
	@echo "make notebooks  execute the chapters and write the committed notebooks and the scoreboard"
	@echo "make lint       check style and types;  make format  mend it"
	@echo "make bench      print speed ratios against peers"
	@echo "make record NAME=budgets   make a recording again"
	@echo "make clean      remove what was built;  the environments .venv and .venv-colab stay"

book: $(VENV)/ready
	$(RUN) -m bookkit build

check: export OMP_NUM_THREADS := 1
check: lint
	$(RUN) -m pytest -n 2 --dist loadfile --ignore tests/book --ignore tests/bookkit -m "not slow and not browser" -q $(ARGS)

# Two processes of one thread: tiny models gain nothing from more, and threads that outnumber cores wait for each other.
test: export OMP_NUM_THREADS := 1
test: $(VENV)/ready $(COLAB)/ready
	$(RUN) -m pytest -n 2 --dist loadfile --ignore tests/book -q $(ARGS)
	$(RUN) -m pytest tests/book $(ARGS)

notebooks: $(VENV)/ready
	$(RUN) -m bookkit refresh

serve: $(VENV)/ready
	$(RUN) -m bookkit serve

lint: $(VENV)/ready
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: $(VENV)/ready
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

bench: $(VENV)/ready
	@for file in benchmarks/*.py; do echo "== $$file"; $(RUN) $$file || exit 1; done

record: $(VENV)/ready
	$(RUN) -m bookkit record $(NAME)

clean:
	rm -rf _build

$(VENV)/ready: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; name another with make PYTHON=python3.12")'
	@echo "making $(VENV) from requirements.txt (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(RUN) -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r requirements.txt
	@$(RUN) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

# What Colab ships, as far as a chapter can tell. torch is the pinned one, since Colab's own build is not needed for that.
$(COLAB)/ready: tests/book/colab-constraints.txt requirements.txt
	@echo "making $(COLAB), a Colab-like environment"
	@$(PYTHON) -m venv $(COLAB)
	@$(COLAB)/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r tests/book/colab-constraints.txt "$$(grep '^torch==' requirements.txt)"
	@touch $@
