# fitout: `make demo` shows the main job on real input, `make test` runs every test.
# Both install the Debian packages they need with apt when they are missing.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# What a build needs, what a run needs, and what only the tests compare with.
BUILD_PACKAGES := gcc protobuf-compiler
RUN_PACKAGES   := mmdebstrap gpg systemd-container iproute2 util-linux
TEST_PACKAGES  := etcd-client libarchive-tools busybox openssl openssh-client curl python3 zstd xz-utils

# Where cargo puts what it builds.
TARGET := $(or $(CARGO_TARGET_DIR),target)
DEMO   := $(TARGET)/demo

# Bases and compressed parts of the tests and the demo live here, so that `make clean-cache` forgets them.
export FITOUT_CACHE ?= $(abspath $(TARGET))/fitout-cache

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | column -t -s "$$(printf '\t')"

.PHONY: packages-demo packages-test
packages-demo:
	@scripts/install-packages $(BUILD_PACKAGES) $(RUN_PACKAGES)
packages-test:
	@scripts/install-packages $(BUILD_PACKAGES) $(RUN_PACKAGES) $(TEST_PACKAGES)

# The announcer runs on every base of its machine: it is linked with no library of theirs. `--target` keeps the static C
# library away from build scripts and procedural macros, which cannot be linked so; without the feature `tool` only what the
# announcer needs is compiled.
HOST_TRIPLE := $(shell rustc -vV | sed -n 's/^host: //p')

.PHONY: build
build: packages-demo agent ## Build the release binary, and the announcer beside it
	cargo build --release --locked --bin fitout

.PHONY: agent
agent: packages-demo ## Build the announcer, statically linked
	RUSTFLAGS="$(RUSTFLAGS) -C target-feature=+crt-static" cargo build --release --locked --no-default-features \
	  --bin mesh-agent --target $(HOST_TRIPLE)
	install -D -m 0755 $(TARGET)/$(HOST_TRIPLE)/release/mesh-agent $(TARGET)/release/mesh-agent

.PHONY: demo
demo: build ## Base, three images, proof and gate of examples/three-site
	@scripts/demo $(TARGET)/release/fitout $(DEMO)

.PHONY: test
test: packages-test ## Everything: format, lints, guards, all tests
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	scripts/guards
	@# What the static build of the announcer compiles: no more than it needs, and it is enough.
	cargo clippy --locked --no-default-features --bin mesh-agent -- -D warnings
	cargo test --locked --no-fail-fast --lib --bins
	@# Two at a time: much of their time they wait for machines and registries, and each may use every processor.
	cargo test --locked --no-fail-fast --test it -- --test-threads 2

.PHONY: corpus
corpus: packages-test ## Every mutation of the corpus with its boot, its etcds and its readers; `make test` takes a sample
	FITOUT_CORPUS=all cargo test --locked --test it -- --test-threads 1 --nocapture corpus

.PHONY: golden
golden: ## Update the golden files of the shipped overlays
	UPDATE_GOLDEN=1 SNAPSHOTS=overwrite cargo test --locked --lib

.PHONY: bench
bench: packages-test ## Speed and memory beside the peers, versions printed
	cargo build --release --locked --bin fitout
	cargo bench --locked

.PHONY: clean-cache
clean-cache: ## Forget cached bases and compressed parts
	rm -rf $(TARGET)/fitout-cache
