# make reproduce   install into .venv and recompute every figure and table into $(OUT), or those that FIGURES names;
#                  with RESUME=1 only those that are not finished there
# make test        install into .venv and run all tests and notebooks
# make deep        run the tests at larger sizes that `make test` leaves out, recompute every figure into
#                  build/figures, and store what passed
# make fetched     unpack what the tests audit into $(AUDITED): the sampler of one released library
# make audits      fetch every library that is audited, audit all, and write docs/audits.md; it can be resumed
# make proofs      prove published verifiers on small shapes and write docs/proofs.md; with STALE=1 only check the
#                  stored proofs of code that changed, and store its digest
# make rocq       check the machine proofs in proofs/ with Coq, and store what they rest on; it says which
#                  packages are missing
# make notebooks   run the notebooks and store their outputs in them
# make docs        install into .venv and build the documentation site in build/site
# make dist        build the wheel and the source distribution, and run each in new environments, one per extra
# make conformance compile and run the harnesses of the conformance suite whose tools are here, and say what was skipped
# make draft       train the draft of SmolLM2 that is shipped again; it can be resumed
# make gpu         laws, texts, rounds and models on a GPU, or a little of each on a CPU, within nine minutes
PYTHON ?= python3
OUT ?= figures
JOBS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n > 4 ? 4 : n)))
AUDITED ?= build/audit
OLDER := vllm==0.23.0

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup reproduce test deep fetched audits proofs rocq notebooks docs conformance dist draft gpu lint types bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: spectheory needs Python 3.11 or newer, and $(PYTHON) is not; run: make PYTHON=/path/to/python3.11" >&2; \
	  exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[models,audit,figures,docs,dev]"
	@touch $@

reproduce: setup
	$(BIN)/python scripts/reproduce.py --out "$(OUT)" --jobs $(JOBS) $(if $(RESUME),--resume) $(FIGURES)

# One thread per test process: pytest-xdist already uses every core.  The tests of a file share what they
# compute once, so one process runs them all, and so do some files (tests/support/shared.py).  Tests start
# interpreters, which read the package's byte code where it is kept.
test: setup fetched
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist loadfile \
	  --no-loadscope-reorder -m "not deep" tests

deep: setup fetched
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto -m deep -rA -q tests > build/deep.txt || { cat build/deep.txt; exit 1; }
	$(BIN)/python scripts/reproduce.py --out build/figures --jobs $(JOBS)
	{ uname -sm; $(BIN)/spectheory --version; git log -1 --format="at %h"; grep -E "^(PASSED|[0-9]+ passed)" build/deep.txt | sed "s/\[.*//" | sort | uniq -c; } \
	  > benchmarks/results/deep.txt

fetched: setup
	$(BIN)/spectheory audit fetch sglang --cache $(AUDITED)

# Exit codes 1 and 4 are results: a defect was found, or a sampler could not be followed.  Older releases
# that are named have a defect that the newest has not.
audits: setup
	$(BIN)/spectheory audit fetch all $(OLDER) --cache $(AUDITED)
	PYTHONPATH=. $(BIN)/python scripts/audit_page.py $(AUDITED) $(AUDITED)/pages all $(OLDER) > build/audits.md || case $$? in 1|4) ;; *) exit 1;; esac
	mv build/audits.md docs/audits.md

proofs: setup
	$(BIN)/python scripts/proofs.py $(if $(STALE),--stale)

rocq:
	$(or $(wildcard $(BIN)/python),$(PYTHON)) scripts/rocq.py

notebooks: setup
	$(BIN)/python scripts/notebook_outputs.py

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python scripts/site_links.py build/site

conformance:
	PYTHONPATH=. $(or $(wildcard $(BIN)/python),$(PYTHON)) -m conformance.harness_runs

dist: setup
	$(BIN)/python scripts/distribution.py

draft: setup
	OMP_NUM_THREADS=1 $(BIN)/python scripts/train_draft.py --work build/draft --out spectheory/models/smollm2_draft

# With the torch that is there: the one of .venv computes on a CPU.
gpu:
	PYTHONPATH=. $(or $(wildcard $(BIN)/python),$(PYTHON)) benchmarks/gpu.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python scripts/lint_pages.py

types: setup
	$(BIN)/mypy

bench: setup
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
