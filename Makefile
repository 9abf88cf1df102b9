# pare: one makefile, not recursive. `make help` lists the targets.
#
# Sources are found by wildcards: a new src/MODULE/x.c, tests/MODULE/test_x.c, examples/NN_x.c or
# bench/x.c needs no change here. Objects of src/cli go into the command only, all others into
# the libraries.

VERSION = 0.2.0
SONAME  = libpare.so.0

BUILD  ?= build
PREFIX ?= /usr/local
BINDIR = $(PREFIX)/bin
LIBDIR = $(PREFIX)/lib
INCDIR = $(PREFIX)/include
MANDIR = $(PREFIX)/share/man
COMPDIR = $(PREFIX)/share/bash-completion/completions
CMAKEDIR = $(LIBDIR)/cmake/pare
SHAREDIR = $(PREFIX)/share/pare
# What `make install` takes the debug information out with; empty: it stays in.
STRIP = strip
FILL = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCDIR@|$(INCDIR)|' -e 's|@VERSION@|$(VERSION)|' \
    -e 's|@SONAME@|$(SONAME)|' -e 's|@LIBS@|$(DEP_LIBS)|' \
    -e "s|@INCREL@|$$(realpath -m --relative-to='$(LIBDIR)' '$(INCDIR)')|"

# All cores unless -j says otherwise (a -j on the command line wins over this one).
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif
MAKEFLAGS += --no-builtin-rules --no-print-directory

OBJCOPY ?= objcopy

# Debian's own python3, where it exists, is the one that sees Debian's numpy.
PYTHON = $(firstword $(wildcard /usr/bin/python3) python3)

ifneq ($(filter / . .. ./ ../,$(BUILD)),)
$(error BUILD=$(BUILD) must be a folder of its own: `make clean` removes it)
endif

# ---- flags ---------------------------------------------------------------------------------

ifeq ($(origin CC),default)
CC = gcc
endif
CFLAGS ?= -O2 -g
WARN    = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wvla
# Never the flags that let a compiler change what a floating-point program means: bounds are
# proofs about IEEE arithmetic, and a contracted multiply-add is another program.
LANGFLAGS = -std=c17 -ffp-contract=off -pthread
CPPBASE   = -D_GNU_SOURCE -DPARE_VERSION='"$(VERSION)"' -Iinclude -Isrc
# SANITIZE=address,undefined is what `make test-asan` passes.
SANFLAGS = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
             -fno-omit-frame-pointer) $(if $(FUZZER),-fsanitize=fuzzer-no-link) \
           $(if $(filter quick,$(FUZZER)),-fno-sanitize-coverage=trace-cmp)

# Libraries are looked up only when something is to be built: on a fresh machine `make demo` and
# `make test` first install what is missing and then call make again.
NOBUILD = setup setup-test setup-bench demo showcase check test test-long test-asan lint format bench docs-check \
          clean help uninstall metrics fuzz fuzz-build fuzz-build-long docs mutants
ifneq ($(filter-out $(NOBUILD),$(or $(MAKECMDGOALS),all)),)
pc = $(shell pkg-config $(1) $(2) 2>/dev/null)
DEPS := lapacke openblas libcjson zlib libcrypto libpcre2-8 libutf8proc
# -isystem: warnings are for our code. The second word of each `or` serves systems whose
# libraries come without pkg-config files.
DEP_CFLAGS  := $(patsubst -I%,-isystem %,$(call pc,--cflags,$(DEPS)))
DEP_LIBS    := $(or $(call pc,--libs,$(DEPS)),-llapacke -lopenblas -lcjson -lz -lcrypto -lpcre2-8 -lutf8proc) -lm
TEST_CFLAGS := $(patsubst -I%,-isystem %,$(call pc,--cflags,cmocka))
TEST_LIBS   := $(or $(call pc,--libs,cmocka),-lcmocka)
MPFR_LIBS   := $(or $(call pc,--libs,mpfr),-lmpfr -lgmp)
# MPI is optional: without it there is no libpare-mpi.so and pare runs in one process.
MPI_PC     := $(firstword $(foreach m,ompi-c mpich,$(if $(call pc,--modversion,$(m)),$(m))))
MPI_CFLAGS := $(if $(MPI_PC),$(patsubst -I%,-isystem %,$(call pc,--cflags,$(MPI_PC))))
MPI_LIBS   := $(if $(MPI_PC),$(call pc,--libs,$(MPI_PC)))
# pare-check is optional: it is built where the headers of FLINT and Arb are found, and uses OpenMP where
# the compiler has it.
includes   = $(shell printf '$(patsubst %,\43include <%>\n,$(1))' | $(CC) $(2) -E -x c - >/dev/null 2>&1 && echo yes)
CHECK_BIN  := $(if $(call includes,arb.h flint/flint.h gmp.h),$(BUILD)/pare-check)
CHECK_OMP  := $(if $(call includes,omp.h,-fopenmp),-fopenmp)
CHECK_LIBS := -lflint-arb -lflint -lmpfr -lgmp $(or $(call pc,--libs,libcjson zlib libcrypto),-lcjson -lz -lcrypto) -lm
endif

BASE_CFLAGS = $(LANGFLAGS) $(CFLAGS) $(WARN) $(SANFLAGS) $(CPPBASE) $(DEP_CFLAGS) $(CPPFLAGS)
ALL_CFLAGS  = $(BASE_CFLAGS) $(if $(filter 1,$(WERROR)),-Werror)
ALL_LDFLAGS = -pthread $(SANFLAGS) $(LDFLAGS)

# ---- what there is -------------------------------------------------------------------------

MPI_SRC := src/base/ranks_mpi.c
LIB_SRC := $(sort $(filter-out src/cli/% $(MPI_SRC),$(wildcard src/*/*.c)))
CLI_SRC := $(sort $(wildcard src/cli/*.c))
STU_SRC := $(sort $(wildcard studies/*.c))
CHK_SRC := $(sort $(wildcard check/*.c))
SUP_SRC := $(sort $(filter-out %/fail_alloc.c,$(wildcard tests/support/*.c)))
TST_SRC := $(sort $(filter-out $(if $(CHECK_BIN),,tests/check/%),$(wildcard tests/*/test_*.c)))
LNG_SRC := $(sort $(wildcard tests/*/long_*.c))
EXA_SRC := $(sort $(wildcard examples/*.c))
BEN_SRC := $(sort $(wildcard bench/*.c))
# What `make check` builds: the rule is in tools/run-tests.
QUICK := $(if $(filter check-programs,$(MAKECMDGOALS)),$(shell $(PYTHON) tools/run-tests --quick --list))

LIB_OBJ = $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
CLI_OBJ = $(CLI_SRC:%.c=$(BUILD)/obj/%.o)
STU_OBJ = $(STU_SRC:%.c=$(BUILD)/obj/%.o)
CHK_OBJ = $(CHK_SRC:%.c=$(BUILD)/obj/%.o)
SUP_OBJ = $(SUP_SRC:%.c=$(BUILD)/obj/%.o)
TST_OBJ = $(TST_SRC:%.c=$(BUILD)/obj/%.o) $(LNG_SRC:%.c=$(BUILD)/obj/%.o)
TST_BIN = $(TST_SRC:%.c=$(BUILD)/%)
LNG_BIN = $(LNG_SRC:%.c=$(BUILD)/%)
EXA_BIN = $(EXA_SRC:%.c=$(BUILD)/%)
BEN_BIN = $(BEN_SRC:%.c=$(BUILD)/%)
NOMEM   = $(filter %_nomem,$(TST_BIN) $(LNG_BIN))
FAIL_ALLOC = $(BUILD)/obj/tests/support/fail_alloc.o

STATIC = $(BUILD)/libpare.a
# The same objects with all their symbols: for tests, fuzz targets and benchmarks, which look inside.
INTERNAL = $(BUILD)/libpare-internal.a
SHARED = $(BUILD)/$(SONAME)
# Not installed: what the two programs have in common (options, progress, printing), and the studies
# as their tests link them.
CLI_LIB = $(BUILD)/libcli.a
# The JSON layer over cJSON and the reader of UTF-8 are no part of the public library; programs have their own copy.
JSON_OBJ = $(filter %/json.o %/json_check.o %/json_print.o %/list.o %/utf8.o,$(LIB_OBJ))
STUDIES = $(BUILD)/libstudies.a
# Loaded at run time, only under mpirun (src/base/ranks.c); looked for beside who asks, and in the
# lib folder beside bin.
MPI_OBJ = $(MPI_SRC:%.c=$(BUILD)/obj/%.o)
MPI_LIB = $(if $(MPI_PC),$(BUILD)/libpare-mpi.so)
RPATH   = -Wl,-rpath,'$$ORIGIN$(1)'

# ---- fuzz targets: with libFuzzer (FUZZER=1, clang) or with a main that replays files -------

FUZ_SRC := $(sort $(wildcard fuzz/fuzz_*.c))
FUZ_SUP := $(sort $(filter-out $(FUZ_SRC) fuzz/standalone.c,$(wildcard fuzz/*.c)))
FUZ_BIN = $(if $(CHECK_BIN),$(ALL_FUZ),$(filter-out %/fuzz_check,$(ALL_FUZ)))
ALL_FUZ = $(FUZ_SRC:%.c=$(BUILD)/%)
FUZ_OBJ = $(FUZ_SUP:%.c=$(BUILD)/obj/%.o) $(if $(FUZZER),,$(BUILD)/obj/fuzz/standalone.o)
# Files are kept in memory: the library's calls that open one go to fuzz/files.c.
FUZ_LINK = -Wl,--wrap=pare_blob_open,--wrap=pare_text_read \
           -Wl,--wrap=pare_file_exists,--wrap=pare_is_dir,--wrap=pare_folder_list $(if $(FUZZER),-fsanitize=fuzzer)
FUZZ_RUNS ?= 1000000

# ---- compile_commands.json: the flags of the rules below; without ccache, which is no compiler ----

ALL_SRC = $(sort $(wildcard src/*/*.c studies/*.c tests/*/*.c examples/*.c bench/*.c fuzz/*.c))
compile_command = {"directory": "$(CURDIR)", "file": "$(1)", "command": "$(subst ",\",$(strip \
    $(filter-out ccache,$(CC)) $(BASE_CFLAGS) $(if $(filter tests/%,$(1)),-Itests/support $(TEST_CFLAGS)) \
    $(if $(filter $(MPI_SRC),$(1)),$(MPI_CFLAGS)) -c $(1)))"}

# ---- targets for people --------------------------------------------------------------------

all: $(BUILD)/pare $(BUILD)/pare-repro $(CHECK_BIN) $(STATIC) $(SHARED) $(BUILD)/libpare.so $(MPI_LIB) $(BUILD)/pare.1 $(BUILD)/pare.bash ## the command and both libraries, into build/
	@:

check: ## after `make`: the quick tests, less than a minute; installs nothing
	@tools/setup --check check "make check"
	@$(MAKE) check-programs
	@$(PYTHON) tools/run-tests --build $(BUILD) --quick $(TESTFLAGS)

setup: ## install what building needs (nothing when it is there)
	@tools/setup build "make setup"
setup-test: ## ... and what the tests and lint need
	@tools/setup test "make setup-test"
setup-bench: ## ... and the programs the benchmarks compare with
	@tools/setup bench "make setup-bench"
	@BUILD=$(BUILD) tools/bench --install

demo: ## install what is missing, build, and show every kind of cut with its certificate
	@tools/setup build "make demo"
	@$(MAKE) all
	@BUILD=$(BUILD) tools/demo

showcase: ## ... the same for two real models from the npm registry, in few bits (ten minutes, network once)
	@tools/setup showcase "make showcase"
	@$(MAKE) all
	@BUILD=$(BUILD) tools/showcase

test: ## install what is missing, build with -Werror, run all tests (about 12 minutes on 2 cores)
	@tools/setup test "make test"
	@$(MAKE) WERROR=1 test-programs
	@$(if $(SANITIZE),,$(MAKE) fuzz-build)
	@$(PYTHON) tools/run-tests --build $(BUILD) $(if $(SANITIZE),--sanitized) $(TESTFLAGS)
test-long: ## ... and the long tests (hours; CONTRIBUTING.md says how many)
	@tools/setup test "make test-long"
	@$(MAKE) WERROR=1 test-programs long-programs
	@$(if $(SANITIZE),,$(MAKE) fuzz-build-long)
	@$(PYTHON) tools/run-tests --build $(BUILD) --long $(if $(SANITIZE),--sanitized) $(TESTFLAGS)
test-asan: ## the tests under the address and undefined-behavior sanitizers
	@$(MAKE) test BUILD=$(BUILD)-asan SANITIZE=address,undefined

fuzz: ## libFuzzer over all readers: FUZZ_RUNS=N each, FUZZ_TARGET=NAME only one
	@tools/setup test "make fuzz"
	@$(MAKE) fuzz-build-long
	@$(PYTHON) tools/fuzz --fuzzers $(BUILD)-fuzz --quick $(BUILD)-fuzz-quick --runs $(FUZZ_RUNS) \
	    $(FUZZ_TARGET)

mutants: ## does a test need every term of a bound? one-line mutants (tools/mutants --help)
	@tools/setup test "make mutants"
	@$(MAKE) WERROR=1 test-programs
	@$(MAKE) mutants-run

lint: ## which module includes which, format, static analysis, banned calls, clang
	@tools/setup test "make lint"
	@$(MAKE) lint-run

metrics: ## lines, functions and public names, by folder (tools/metrics --help)
	@$(PYTHON) tools/metrics $(METRICSFLAGS)

tidy: compile_commands.json ## clang-tidy over TIDY="files" (all of src/base and src/cli), by .clang-tidy
	@command -v clang-tidy >/dev/null || { echo "make tidy needs clang-tidy (Debian: apt-get install clang-tidy)" >&2; exit 2; }
	@printf '%s\n' $(or $(TIDY),$(wildcard src/base/*.c src/cli/*.c)) | \
	    xargs -P $$(nproc) -n 4 clang-tidy --quiet --warnings-as-errors='*' -p . 2>/dev/null

compile_commands.json: ## how each file is compiled, for clangd, clang-tidy and editors
	$(file >$@,[)$(file >>$@,$(call compile_command,$(firstword $(ALL_SRC))))
	$(foreach f,$(wordlist 2,9999,$(ALL_SRC)),$(file >>$@,,$(call compile_command,$(f))))
	$(file >>$@,])
	@echo "$@: $(words $(ALL_SRC)) files"

format: ## put all C files into the committed format (clang-format)
	@tools/setup test "make format"
	@$(PYTHON) tools/lint --format

bench: ## speed figures and their peers as CSV, also into out/bench.csv (docs/bench.md)
	@tools/setup build "make bench"
	@$(MAKE) bench-programs
	@BUILD=$(BUILD) tools/bench $(BENCHFLAGS)

docs: ## the API reference as out/api.html, and the picture docs/report.png (needs chromium)
	@$(PYTHON) tools/api-docs --version $(VERSION) -o out/api.html
	@$(MAKE) all
	@BUILD=$(BUILD) $(PYTHON) tools/report-picture -o docs/report.png

docs-check: ## run the console blocks of the documents and follow their links
	@tools/setup test "make docs-check"
	@$(MAKE) example-programs
	@$(PYTHON) tools/docs-check --build $(BUILD)

install: all ## copy command, libraries, headers, man page, completion to DESTDIR/PREFIX (STRIP= keeps debug information)
	install -d "$(DESTDIR)$(BINDIR)" "$(DESTDIR)$(LIBDIR)/pkgconfig" "$(DESTDIR)$(CMAKEDIR)" \
	    "$(DESTDIR)$(INCDIR)/pare" "$(DESTDIR)$(MANDIR)/man1" "$(DESTDIR)$(COMPDIR)" "$(DESTDIR)$(SHAREDIR)"
	install -m 755 $(BUILD)/pare "$(DESTDIR)$(BINDIR)/pare"
	install -m 755 $(BUILD)/pare-repro "$(DESTDIR)$(BINDIR)/pare-repro"
	$(if $(CHECK_BIN),install -m 755 $(CHECK_BIN) "$(DESTDIR)$(BINDIR)/pare-check")
	install -m 644 $(STATIC) "$(DESTDIR)$(LIBDIR)/libpare.a"
	install -m 755 $(SHARED) "$(DESTDIR)$(LIBDIR)/libpare.so.$(VERSION)"
	ln -sf libpare.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/$(SONAME)"
	ln -sf $(SONAME) "$(DESTDIR)$(LIBDIR)/libpare.so"
	$(if $(MPI_LIB),install -m 755 $(MPI_LIB) "$(DESTDIR)$(LIBDIR)/libpare-mpi.so")
	$(if $(STRIP),$(STRIP) --strip-debug "$(DESTDIR)$(BINDIR)/pare" "$(DESTDIR)$(BINDIR)/pare-repro" "$(DESTDIR)$(LIBDIR)/libpare.a" \
	    "$(DESTDIR)$(LIBDIR)/libpare.so.$(VERSION)" $(if $(MPI_LIB),"$(DESTDIR)$(LIBDIR)/libpare-mpi.so") \
	    $(if $(CHECK_BIN),"$(DESTDIR)$(BINDIR)/pare-check"))
	@$(if $(STRIP),echo "The debug information was left out; make install STRIP= keeps it.")
	install -m 644 include/pare/*.h "$(DESTDIR)$(INCDIR)/pare/"
	install -m 644 examples/pipe/* "$(DESTDIR)$(SHAREDIR)/"
	$(FILL) tools/pare.pc.in >"$(DESTDIR)$(LIBDIR)/pkgconfig/pare.pc"
	$(FILL) tools/pare-config.cmake.in >"$(DESTDIR)$(CMAKEDIR)/pare-config.cmake"
	$(FILL) tools/pare-config-version.cmake.in >"$(DESTDIR)$(CMAKEDIR)/pare-config-version.cmake"
	install -m 644 $(BUILD)/pare.1 "$(DESTDIR)$(MANDIR)/man1/pare.1"
	install -m 644 $(BUILD)/pare.bash "$(DESTDIR)$(COMPDIR)/pare"

uninstall: ## remove what install put there
	rm -f "$(DESTDIR)$(BINDIR)/pare" "$(DESTDIR)$(BINDIR)/pare-repro" "$(DESTDIR)$(BINDIR)/pare-check" \
	    "$(DESTDIR)$(LIBDIR)/libpare.a" "$(DESTDIR)$(LIBDIR)/libpare.so" "$(DESTDIR)$(LIBDIR)/$(SONAME)" \
	    "$(DESTDIR)$(LIBDIR)/libpare.so.$(VERSION)" "$(DESTDIR)$(LIBDIR)/libpare-mpi.so" \
	    "$(DESTDIR)$(LIBDIR)/pkgconfig/pare.pc" "$(DESTDIR)$(MANDIR)/man1/pare.1" "$(DESTDIR)$(COMPDIR)/pare"
	rm -rf "$(DESTDIR)$(INCDIR)/pare" "$(DESTDIR)$(SHAREDIR)" "$(DESTDIR)$(CMAKEDIR)"

clean: ## remove build/, build-asan/ and build-fuzz*/
	rm -rf "$(BUILD)" "$(BUILD)-asan" "$(BUILD)-fuzz" "$(BUILD)-fuzz-quick"

help: ## this list
	@awk -F':.*## ' '/^[a-z_.-]+:.*## / { printf "  make %-22s %s\n", $$1, $$2 }' Makefile

# ---- targets for the targets above ---------------------------------------------------------

check-programs: all $(addprefix $(BUILD)/,$(QUICK))
	@:
test-programs: example-programs $(TST_BIN) $(FUZ_BIN) $(BUILD)/bench/tokenize
	@:
example-programs: all $(EXA_BIN)
	@:
long-programs: $(LNG_BIN)
	@:
bench-programs: all $(BEN_BIN)
	@:
fuzz-programs: $(FUZ_BIN)
	@:
# Nothing without clang's libFuzzer: the tests then say that they skip it.
FUZZ_MAKE = $(MAKE) fuzz-programs CC=clang WERROR=1 CFLAGS='-O1 -g -DPARE_CHUNK_BYTES=4096' \
            SANITIZE=address,undefined,float-cast-overflow
fuzz-build:
	+@if $(PYTHON) tools/fuzz --available; then $(FUZZ_MAKE) BUILD=$(BUILD)-fuzz FUZZER=1; fi
# The same sanitizers and counters, but comparisons are not reported to libFuzzer: up to three
# times as fast, for the long part of a long run (tools/fuzz).
fuzz-build-long: fuzz-build
	+@if $(PYTHON) tools/fuzz --available; then $(FUZZ_MAKE) BUILD=$(BUILD)-fuzz-quick FUZZER=quick; fi
lint-run:
	@LINT_CFLAGS="$(LANGFLAGS) $(WARN) -Iinclude -Isrc -Itests/support $(DEP_CFLAGS) $(TEST_CFLAGS) $(MPI_CFLAGS)" \
	    $(PYTHON) tools/lint

# The flags of a library object without warnings, and of a test program.
mutants-run:
	@MUTANT_CC="$(CC) $(LANGFLAGS) $(CFLAGS) $(CPPBASE) $(DEP_CFLAGS) $(CPPFLAGS)" \
	    MUTANT_LINK="$(CC) $(ALL_LDFLAGS)" MUTANT_LIBS="$(MPFR_LIBS) $(TEST_LIBS) $(DEP_LIBS)" \
	    MUTANT_SUPPORT="$(SUP_OBJ) $(STUDIES)" $(PYTHON) tools/mutants --build $(BUILD) $(MUTANTS)

# ---- rules ---------------------------------------------------------------------------------

Q = $(if $(V),,@)
say = $(if $(V),,@printf '  %-4s %s\n' $(1) $(2))

# Other flags or another compiler mean other objects; -Werror does not. A file added or removed
# means another library.
ifneq ($(filter-out $(NOBUILD) lint-run mutants-run tidy compile_commands.json,$(or $(MAKECMDGOALS),all)),)
FLAGS_NOW := $(CC) $(BASE_CFLAGS) | $(DEP_LIBS) | $(ALL_LDFLAGS)
ifneq ($(FLAGS_NOW),$(file <$(BUILD)/.flags))
$(shell mkdir -p $(BUILD))
$(file >$(BUILD)/.flags,$(FLAGS_NOW))
endif
ifneq ($(LIB_SRC) | $(CLI_SRC) | $(STU_SRC),$(file <$(BUILD)/.sources))
$(file >$(BUILD)/.sources,$(LIB_SRC) | $(CLI_SRC) | $(STU_SRC))
endif
# The commit that `pare bench` prints, in the one object that knows it.
COMMIT_NOW := $(shell git describe --always --dirty --exclude '*' 2>/dev/null)
ifneq ($(COMMIT_NOW),$(file <$(BUILD)/.commit))
$(file >$(BUILD)/.commit,$(COMMIT_NOW))
endif
endif
$(BUILD)/.flags $(BUILD)/.sources $(BUILD)/.commit: ;
# With libFuzzer's counters as well, clang 14 takes three minutes for these kernels.
$(BUILD)/obj/src/linalg/packed_avx512.o: EXTRA = $(if $(FUZZER),-fno-sanitize=undefined -fno-sanitize=float-cast-overflow)
$(BUILD)/obj/src/cli/bench_machine.o: $(BUILD)/.commit
$(BUILD)/obj/src/cli/bench_machine.o: EXTRA = -DPARE_COMMIT='"$(COMMIT_NOW)"'

$(LIB_OBJ) $(MPI_OBJ): PIC = -fPIC -fno-semantic-interposition
$(MPI_OBJ): EXTRA = $(MPI_CFLAGS)
$(TST_OBJ) $(SUP_OBJ) $(FAIL_ALLOC): EXTRA = -Itests/support $(TEST_CFLAGS)

$(BUILD)/obj/%.o: %.c $(BUILD)/.flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(PIC) $(EXTRA) -MMD -MP -c -o $@ $<

# q, not r: modules may have files of the same name, and r would let one replace the other.
$(INTERNAL): $(LIB_OBJ) $(BUILD)/.sources
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(AR) qcs $@ $(LIB_OBJ)

# What the libraries show: the names in the public headers, and nothing else. The static library is
# one object, so that all other names can be made local to it.
$(BUILD)/libpare.names: $(wildcard include/pare/*.h)
	@mkdir -p $(@D)
	@cat $^ | $(CC) -x c -fpreprocessed -dD -E -P - | grep -oE '\bpare_[a-z0-9_]+' | sort -u >$@
$(STATIC): $(LIB_OBJ) $(BUILD)/.sources $(BUILD)/libpare.names
	$(call say,AR,$@)
	$(Q)$(LD) -r -o $(BUILD)/libpare.o $(LIB_OBJ)
	$(Q)$(OBJCOPY) --keep-global-symbols=$(BUILD)/libpare.names $(BUILD)/libpare.o
	@rm -f $@
	$(Q)$(AR) qcs $@ $(BUILD)/libpare.o

$(CLI_LIB): $(filter-out %/main.o,$(CLI_OBJ)) $(BUILD)/.sources
	@rm -f $@
	$(Q)$(AR) qcs $@ $(filter-out %/main.o,$(CLI_OBJ))
$(STUDIES): $(filter-out %/main.o,$(STU_OBJ)) $(BUILD)/.sources
	@rm -f $@
	$(Q)$(AR) qcs $@ $(filter-out %/main.o,$(STU_OBJ))

$(BUILD)/libpare.map: $(BUILD)/libpare.names
	@{ echo '{ global:'; sed 's/$$/;/' $<; echo 'local: *; };'; } > $@

$(SHARED): $(LIB_OBJ) $(BUILD)/.sources $(BUILD)/libpare.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=$(BUILD)/libpare.map \
	    $(ALL_LDFLAGS) $(call RPATH,) -o $@ $(LIB_OBJ) $(DEP_LIBS)

$(BUILD)/libpare-mpi.so: $(MPI_OBJ) tools/libpare.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,--version-script=tools/libpare.map $(ALL_LDFLAGS) -o $@ $< $(MPI_LIBS)

$(BUILD)/libpare.so: $(SHARED)
	@ln -sf $(SONAME) $@

$(BUILD)/pare: $(CLI_OBJ) $(JSON_OBJ) $(STATIC)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(call RPATH,:$$ORIGIN/../lib) -o $@ $(CLI_OBJ) $(JSON_OBJ) $(STATIC) $(DEP_LIBS)

$(BUILD)/pare-repro: $(BUILD)/obj/studies/main.o $(STUDIES) $(CLI_LIB) $(JSON_OBJ) $(STATIC)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(call RPATH,:$$ORIGIN/../lib) -o $@ $< $(STUDIES) $(CLI_LIB) $(JSON_OBJ) $(STATIC) $(DEP_LIBS)

# Nothing of the library is on its include path.
$(CHK_OBJ): $(BUILD)/obj/%.o: %.c check/check.h Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(LANGFLAGS) $(CFLAGS) $(WARN) -Wno-unknown-pragmas $(SANFLAGS) $(CHECK_OMP) -D_GNU_SOURCE \
	    $(if $(filter 1,$(WERROR)),-Werror) $(CPPFLAGS) -c $< -o $@
$(BUILD)/pare-check: $(CHK_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(CHECK_OMP) -o $@ $^ $(CHECK_LIBS)

# The man page and the bash completion are written by the command, from its tables of options.
$(BUILD)/pare.1: $(BUILD)/pare $(BUILD)/pare-repro
	$(call say,MAN,$@)
	$(Q)$(BUILD)/pare help --man >$@
$(BUILD)/pare.bash: $(BUILD)/pare $(BUILD)/pare-repro
	$(call say,BASH,$@)
	$(Q)$(BUILD)/pare help --completion >$@

# A test that makes allocations fail stands before malloc, for its own objects and our library.
$(NOMEM): $(FAIL_ALLOC)
$(NOMEM): WRAP = $(FAIL_ALLOC) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
# A test of tests/check looks inside pare-check.
CHECK_TST = $(filter $(BUILD)/tests/check/%,$(TST_BIN) $(LNG_BIN))
$(CHECK_TST): $(filter-out %/main.o,$(CHK_OBJ))
$(CHECK_TST): WRAP += $(filter-out %/main.o,$(CHK_OBJ)) $(CHECK_OMP) $(CHECK_LIBS)
# A test of tests/faults stands before the calls that change the disk.
FAULTS  = $(filter $(BUILD)/tests/faults/%,$(TST_BIN) $(LNG_BIN))
FAIL_IO = $(BUILD)/obj/tests/faults/fail_io.o
$(FAULTS): $(FAIL_IO)
$(FAULTS): WRAP = $(FAIL_IO) -Wl,--wrap=open,--wrap=write,--wrap=fsync,--wrap=close \
                  -Wl,--wrap=rename,--wrap=renameat2,--wrap=link,--wrap=mkdir
# Tests whose name ends in _mpfr compare with MPFR.
$(filter %_mpfr,$(TST_BIN) $(LNG_BIN)): WRAP = $(MPFR_LIBS)
$(TST_BIN) $(LNG_BIN): $(BUILD)/%: $(BUILD)/obj/%.o $(SUP_OBJ) $(STUDIES) $(INTERNAL)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(call RPATH,/../..) -o $@ $< $(SUP_OBJ) $(WRAP) $(STUDIES) $(INTERNAL) $(TEST_LIBS) $(DEP_LIBS)

# The target of pare-check has the objects of check/ and none of the library.
CHECK_FUZ = $(filter %/fuzz_check,$(FUZ_BIN))
$(CHECK_FUZ): $(BUILD)/obj/fuzz/fuzz_check.o $(filter-out %/main.o,$(CHK_OBJ)) $(if $(FUZZER),,$(BUILD)/obj/fuzz/standalone.o)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(CHECK_OMP) $(if $(FUZZER),-fsanitize=fuzzer) -o $@ $^ $(CHECK_LIBS)

$(filter-out $(CHECK_FUZ),$(FUZ_BIN)): $(BUILD)/%: $(BUILD)/obj/%.o $(FUZ_OBJ) $(INTERNAL)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(FUZ_LINK) -o $@ $< $(FUZ_OBJ) $(INTERNAL) $(DEP_LIBS)

$(EXA_BIN): LIBRARY = $(STATIC)
$(BEN_BIN): LIBRARY = $(INTERNAL)
$(EXA_BIN): $(STATIC)
$(BEN_BIN): $(INTERNAL)
$(EXA_BIN) $(BEN_BIN): $(BUILD)/%: $(BUILD)/obj/%.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $(LIBRARY) $(DEP_LIBS)

-include $(wildcard $(BUILD)/obj/*/*.d $(BUILD)/obj/*/*/*.d)

.PHONY: all check check-programs metrics tidy compile_commands.json setup setup-test setup-bench demo showcase test test-long test-asan lint format bench docs docs-check \
        install uninstall clean help fuzz fuzz-programs fuzz-build fuzz-build-long test-programs example-programs long-programs bench-programs lint-run mutants mutants-run
.SECONDARY:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all
