/* fuzz.h - what the fuzz targets share. A target is one fuzz_NAME.c with LLVMFuzzerTestOneInput;
 * it is linked with libFuzzer (`make fuzz`) or with standalone.c, which replays files.
 *
 * Files are kept in memory: the linker sends the library's calls that open files here (--wrap), so
 * that a run costs no system call and every file ends exactly where its block of memory ends: one
 * byte read too far is seen by the address sanitizer. */
#ifndef FUZZ_H
#define FUZZ_H
#include <pare/model.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* libFuzzer's own mutator; in standalone.c it does nothing. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* A property that must hold for every input; the process ends where it does not. */
#define FUZZ_EXPECT(cond) ((cond) ? (void)0 : fuzz_broken(__FILE__, __LINE__, #cond))
_Noreturn void fuzz_broken(const char *file, int line, const char *what);
/* A refusal says why and with the right code; a success is no refusal. */
void fuzz_expect_said(pare_status st, const pare_err *err);

/* The only files there are: at most 16, path and data borrowed until fuzz_no_files. What has a file
 * behind a slash is a folder. */
void fuzz_file(const char *path, const uint8_t *data, size_t bytes);
void fuzz_no_files(void);

/* Two parts in one input: a 16-bit length, the first part, the second. */
typedef struct fuzz_parts {
    const uint8_t *a, *b;
    size_t na, nb;
} fuzz_parts;
fuzz_parts fuzz_split(const uint8_t *data, size_t size);

typedef size_t fuzz_mutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
/* Changes the header text and corrects its length in front, or else any byte. */
size_t fuzz_mutate_safetensors(uint8_t *data, size_t size, size_t max_size, unsigned seed);
/* Changes a value of JSON to another one, or else any byte. */
size_t fuzz_mutate_json(uint8_t *data, size_t size, size_t max_size, unsigned seed);
/* Replaces `n` bytes at `at` by their mutation; what follows moves, *size grows or shrinks. Returns
 * the new number. */
size_t fuzz_mutate_inside(uint8_t *data, size_t *size, size_t max_size, size_t at, size_t n,
                          fuzz_mutator *mutate, unsigned seed);
/* Changes one of two parts (the second by `second`, NULL: bytes) and keeps the length true. */
size_t fuzz_mutate_parts(uint8_t *data, size_t size, size_t max_size, unsigned seed,
                         fuzz_mutator *second);

/* Makes checksums true again, so that a mutation gets behind them. */
void fuzz_reseal_model(uint8_t *data, size_t size);
bool fuzz_reseal_npz(uint8_t *data, size_t size); /* false: nothing was to be done */

/* Runs a model that was accepted, if it is small: both passes and the folded form. */
void fuzz_run_model(const pare_model *m);
#endif
